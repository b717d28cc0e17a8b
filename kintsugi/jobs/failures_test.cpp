#include "kintsugi/jobs/failures.h"

#include <gtest/gtest.h>

namespace kintsugi::jobs::failures_test {
namespace {

std::string kind_of(const std::vector<std::string>& lines, bool restart) {
  const Failure failure = failure_of(lines, "code 1");
  EXPECT_EQ(failure.kind->response == Response::restart, restart) << failure.kind->name;
  return std::string(failure.kind->name);
}

TEST(Failures, ThatWouldRecurStop) {
  EXPECT_EQ(
      kind_of({"error: [train] step 3: the loss is not finite; first bad value: none", "srun: error: Killed"}, false),
      "the loss or the gradient is not finite");
  EXPECT_EQ(kind_of({"error: [train] another process trains in \"runs/a\"; wait for it"}, false),
            "another process trains in the run's folder");
  EXPECT_EQ(kind_of({"error: [config] run.toml:3: unknown key"}, false), "the configuration is wrong");
  EXPECT_EQ(kind_of({"error: [file] \"x\": No space left on device"}, false), "the disk is full");
  EXPECT_EQ(kind_of({"error: [launch] srun started 4 processes that do not find each other"}, false),
            "the ranks do not find each other");
  EXPECT_EQ(kind_of({"error: rank 2: [data] there is no token file"}, false), "an error of the run");
}

TEST(Failures, OfRanksAndNodesStartAgain) {
  EXPECT_EQ(kind_of({"error: [comm] rank 0: all_reduce of 4 bytes among ranks 0 1 did not end within 600 s"}, true),
            "a rank was lost");
  EXPECT_EQ(kind_of({"srun: error: n3: task 2: Killed"}, true), "a rank was killed");
  EXPECT_EQ(kind_of({"srun: error: Node failure on n2"}, true), "a node was lost");
  EXPECT_EQ(kind_of({"slurmstepd: error: Detected 1 oom_kill event in StepId=3.0."}, true),
            "the ranks' memory is used up");
  EXPECT_EQ(kind_of({}, true), "the ranks ended");
  EXPECT_EQ(failure_of({}, "signal 9").line, "signal 9");
}

TEST(Failures, NameTheVictim) {
  EXPECT_EQ(victim_of({"srun: error: nid001: tasks 4-7: Killed"}), "ranks 4-7 on nid001");
  EXPECT_EQ(victim_of({"x", "srun: error: n3: task 2: Killed", "srun: error: n1: task 0: Exited with exit code 1"}),
            "rank 2 on n3");
  EXPECT_EQ(victim_of({"srun: error: n1: task 0: Exited with exit code 1"}), "");
  EXPECT_EQ(victim_of({"srun: error: n1: task"}), "");
}

}  // namespace
}  // namespace kintsugi::jobs::failures_test
