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
  const char* const failed_start =
      "slurmstepd-n1: error:  mpi/pmix_v4: pmixp_p2p_send: n1 [0]: pmixp_utils.c:467: send failed, rc=1001, exceeded "
      "the "
      "retry limit";
  EXPECT_EQ(kind_of({failed_start}, true), "the start of the ranks failed");
  EXPECT_TRUE(is_failed_start(failed_start));
  EXPECT_FALSE(is_failed_start("srun: error: Node failure on n2"));
  EXPECT_EQ(kind_of({"slurmstepd: error: Detected 1 oom_kill event in StepId=3.0."}, true),
            "the ranks' memory is used up");
  EXPECT_EQ(kind_of({}, true), "the ranks ended");
  EXPECT_EQ(failure_of({}, "signal 9").line, "signal 9");
}

std::string victim(const std::vector<std::string>& lines) {
  return in_words(victim_of(lines));
}

TEST(Failures, NameTheVictim) {
  EXPECT_EQ(victim({"srun: error: nid001: tasks 4-7: Killed"}), "ranks 4-7 on nid001");
  EXPECT_EQ(victim({"x", "srun: error: n3: task 2: Killed", "srun: error: n1: task 0: Exited with exit code 1"}),
            "rank 2 on n3");
  EXPECT_EQ(victim({"srun: error: n1: task 0: Exited with exit code 1"}), "");
  EXPECT_EQ(victim({"srun: error: n1: task"}), "");
  EXPECT_EQ(victim({"srun: error: Node failure on n3"}), "n3");
  EXPECT_EQ(victim({"srun: error: Task launch for StepId=3.0 failed on node n3: Communication connection failure"}),
            "n3");
  EXPECT_EQ(victim({"mpirun noticed that process rank 2 with PID 81 on node n3 exited on signal 9 (Killed)."}),
            "rank 2 on n3");
  EXPECT_EQ(victim({"x3006c0s13b1n0: rank 5 died from signal 9"}), "rank 5 on x3006c0s13b1n0");
  EXPECT_EQ(victim({"no sign of life from rank 2 on n3 for 60 s"}), "rank 2 on n3");
  EXPECT_EQ(victim({"no sign of life from any rank on n3 for 60 s (ranks 4 5)"}), "n3");
  EXPECT_EQ(victim({"error: [launch] rank 2 on n3 computes wrong results: a product"}), "rank 2 on n3");
  EXPECT_EQ(victim({"error: [train] rank 0: after step 40: \"x\" is not the same on rank 2 (n3) as on ranks 0 1 3"}),
            "rank 2 on n3");
}

TEST(Failures, NameTheRankThatReports) {
  EXPECT_EQ(reporting_rank("error: rank 2: [data] there is no token file"), 2);
  EXPECT_EQ(reporting_rank("error: [checkpoint] rank 3: step 40 is not saved"), 3);
  EXPECT_EQ(reporting_rank("error: [config] run.toml:3: unknown key"), 0);
  EXPECT_EQ(reporting_rank("srun: error: n3: task 2: Killed"), -1);
}

// Of the table itself: no row hides a later one, so that each can be reached by its text alone.
TEST(Failures, EachRowOfTheTableIsFoundByItsText) {
  for (const FailureKind& kind : failure_kinds())
    EXPECT_EQ(failure_of({"line: " + std::string(kind.text)}, "code 1").kind, &kind) << kind.name;
}

TEST(Failures, OnlyLostAndFaultyNodesAreBlamedAtOnce) {
  const auto blame = [](const std::string& line) { return failure_of({line}, "code 1").kind->blame; };
  EXPECT_EQ(blame("srun: error: Node failure on n2"), Blame::at_once);
  EXPECT_EQ(blame("error: [launch] rank 2 on n3 computes wrong results: a product"), Blame::at_once);
  EXPECT_EQ(blame("srun: error: n3: task 2: Killed"), Blame::repeated);
  EXPECT_EQ(blame("error: [config] run.toml:3: unknown key"), Blame::never);
}

}  // namespace
}  // namespace kintsugi::jobs::failures_test
