// Starts comm_rank (mpi/ranks_test_program.cpp) under the mpirun of each MPI with a module.
#include "kintsugi/comm/mpi_world.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/base/error.h"
#include "tests/patterns.h"

namespace kintsugi::comm::mpi_world_test {
namespace {

using Lines = std::vector<std::string>;

struct Mpi {
  std::string name, module, run;
};
const std::array kMpis = {
    Mpi{"openmpi", "kintsugi_mpi_openmpi.so", "mpirun.openmpi --oversubscribe --allow-run-as-root"},
    Mpi{"mpich", "kintsugi_mpi_mpich.so", "mpirun.mpich"},
};

std::filesystem::path here() {
  return std::filesystem::read_symlink("/proc/self/exe").parent_path();
}

struct Result {
  int code = 0;  // of the launcher; 128 and more for a signal
  Lines lines;   // of ranks, sorted
  std::string all;
  double seconds = 0;
};

Result run(const std::string& command) {
  Result result;
  const auto start = std::chrono::steady_clock::now();
  FILE* pipe = popen(("timeout -k 1 300 " + command + " 2>&1").c_str(), "r");
  std::array<char, 4096> line;
  while (fgets(line.data(), line.size(), pipe) != nullptr) {
    result.all += line.data();
    if (std::string text = line.data(); text.starts_with("rank ")) {
      text.pop_back();
      result.lines.push_back(text);
    }
  }
  const int status = pclose(pipe);
  result.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  std::sort(result.lines.begin(), result.lines.end());
  return result;
}

bool is_there(const Mpi& mpi) {
  const std::string launcher = mpi.run.substr(0, mpi.run.find(' '));
  return std::filesystem::exists(here() / mpi.module) &&
         std::system(("command -v " + launcher + " >/dev/null").c_str()) == 0;
}

// Time limits: the first that is long enough for the load of the machine.
const std::vector<std::string> kLimits = {"0.6", "3", "12"};

Result run_ranks(const Mpi& mpi, int ranks, const std::string& name, const std::string& limit = "240") {
  return run(mpi.run + " -n " + std::to_string(ranks) + " " + (here() / "comm_rank").string() + " " + name + " " +
             limit);
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}

class RanksOverMpi : public ::testing::Test {
 protected:
  explicit RanksOverMpi(const Mpi& used) : mpi(used) {}
  void SetUp() override {
    if (!is_there(mpi)) GTEST_SKIP() << "no " << mpi.module << ", or no " << mpi.run;
  }

  // A case that fails on three ranks: checks what certain ranks print, and that all end. On a busy machine a rank may
  // be too late to be detected: then the same with a longer limit.
  void expect_failure(const std::string& name, Lines lines, const std::string& only = "012") {
    Result result;
    for (size_t i = 0; i < kLimits.size(); ++i) {
      if (i > 0)
        for (std::string& line : lines)
          line = replaced(line, " within " + kLimits[i - 1] + " s", " within " + kLimits[i] + " s");
      result = run_ranks(mpi, 3, name, kLimits[i]);
      EXPECT_NE(result.code, 0) << result.all;
      EXPECT_LT(result.seconds, 20 + 3 * std::stod(kLimits[i])) << result.all;
      std::erase_if(result.lines, [&](const std::string& line) { return only.find(line[5]) == std::string::npos; });
      if (result.lines == lines) return;
    }
    EXPECT_EQ(result.lines, lines) << result.all;
  }

  const Mpi mpi;
};

class OverMpi : public RanksOverMpi, public ::testing::WithParamInterface<Mpi> {
 protected:
  OverMpi() : RanksOverMpi(GetParam()) {}
};

// For results that do not depend on how an MPI ends processes.
class OverOneMpi : public RanksOverMpi {
 protected:
  OverOneMpi() : RanksOverMpi(is_there(kMpis[1]) ? kMpis[1] : kMpis[0]) {}
};

std::string of_all(const std::string& what) {
  return what + " among ranks 0 1 2 did not end within 0.6 s: ranks 0 1 arrived, rank 2 did not";
}
std::string went_no_further(const std::string& what) {
  return what + " among ranks 0 1 2 did not end within 0.6 s: ranks 0 1 arrived, rank 2 arrived and made no progress";
}
const std::string kSmall = "[comm] all_reduce of 4096 bytes", kLarge = "[comm] all_reduce of 67108864 bytes";

}  // namespace

TEST_P(OverMpi, EveryCollective) {
  for (const int ranks : {1, 2, 3, 4}) {
    const Result result = run_ranks(mpi, ranks, "table");
    Lines right;
    for (int r = 0; r < ranks; ++r) right.push_back("rank " + std::to_string(r) + ": right");
    EXPECT_EQ(result.lines, right) << result.all;
    EXPECT_EQ(result.code, 0) << result.all;
  }
}

TEST_P(OverMpi, ThousandsOfChannels) {
  const Result result = run_ranks(mpi, 3, "channels");
  EXPECT_EQ(result.lines, (Lines{"rank 0: right", "rank 1: right", "rank 2: right"})) << result.all;
}

TEST_F(OverOneMpi, ARankThatDoesNotArrive) {
  expect_failure("absent", {"rank 0: " + of_all(kSmall), "rank 1: " + of_all(kSmall)});
}

// Open MPI lets a stopped process continue before it ends it, so it may print a line.
TEST_P(OverMpi, ARankThatIsStopped) {
  expect_failure("stopped", {"rank 0: " + of_all(kSmall), "rank 1: " + of_all(kSmall)}, "01");
}

TEST_F(OverOneMpi, ARankThatIsStoppedInACollective) {
  expect_failure("stuck", {"rank 0: " + went_no_further(kLarge), "rank 1: " + went_no_further(kLarge)}, "01");
}

// It continues after the others have given up, and reports only about itself.
TEST_P(OverMpi, ARankThatIsStoppedAndGoesOn) {
  expect_failure("late", {"rank 0: " + of_all(kSmall), "rank 1: " + of_all(kSmall),
                          "rank 2: [comm] rank 2 arrived after the others had timed out: " + of_all(kSmall).substr(7)});
  const std::string gave_up = "all_reduce of 4096 bytes among ranks 0 1 2 did not end within .*";
  const std::string first = "rank 0: \\[comm\\] " + gave_up;
  const std::string last =
      "rank 2: \\[comm\\] rank 2 was suspended for [0-9.]+ s, and the others timed out: " + gave_up;
  Result result;
  const auto is_right = [&] {
    return result.lines.size() == 2 && tests::matches(result.lines[0], first) && tests::matches(result.lines[1], last);
  };
  for (const char* limit : {"2", "8"})
    if (!is_right()) result = run_ranks(mpi, 3, "suspended", limit);
  EXPECT_TRUE(is_right()) << result.all;
}

// A rank that is done with a group leaves it, and makes others.
TEST_P(OverMpi, AGroupThatOthersHaveLeft) {
  const Result result = run_ranks(mpi, 3, "rows");
  EXPECT_EQ(result.lines, (Lines{"rank 0: right", "rank 1: right", "rank 2: right"})) << result.all;
  EXPECT_EQ(result.code, 0) << result.all;
}

// Programs that end without a message, and ranks whose peer never calls MPI.
TEST_P(OverMpi, NoneEndsInSilence) {
  Result result = run_ranks(mpi, 2, "unsaid", "3");
  EXPECT_NE(result.code, 0) << result.all;
  EXPECT_NE(result.all.find("error: [comm] rank 1 left the run early, by an error that nobody caught in time\n"),
            std::string::npos)
      << result.all;
  result = run(mpi.run + " -n 1 " + (here() / "comm_rank").string() + " table 2 : -n 1 sleep 50");
  EXPECT_NE(result.code, 0) << result.all;
  EXPECT_LT(result.seconds, 30) << result.all;
  EXPECT_NE(result.all.find("error: [comm] rank 0: the start of MPI did not end within 2 s; did all ranks start, and "
                            "with the same verb?\n"),
            std::string::npos)
      << result.all;
}

// Either the launcher detects it first, and no rank prints anything, or the timeout expires.
TEST_P(OverMpi, ARankThatIsKilledInACollective) {
  const Result result = run_ranks(mpi, 3, "killed", kLimits[0]);
  EXPECT_NE(result.code, 0) << result.all;
  EXPECT_LT(result.seconds, 20) << result.all;
  for (const auto& line : result.lines) EXPECT_EQ(line.substr(8), went_no_further(kLarge));
}

TEST_F(OverOneMpi, ARankThatEnds) {
  const std::string why = "[data] the file is gone";
  expect_failure("ends",
                 {"rank 0: [comm] rank 2 ended: " + why, "rank 1: [comm] rank 2 ended: " + why, "rank 2: " + why});
}

TEST_F(OverOneMpi, AMessageThatNobodyTakes) {
  expect_failure(
      "message",
      {"rank 0: [comm] send of 12 bytes from rank 0 to rank 1 did not end within 0.6 s: rank 0 arrived, rank 1 did not",
       "rank 2: [comm] barrier among ranks 0 1 2 did not end within 0.6 s: rank 2 arrived, ranks 0 1 did not"});
}

TEST_F(OverOneMpi, AnExchangeThatOneRankDoesNotJoin) {
  expect_failure(
      "exchange",
      {"rank 0: [comm] barrier among ranks 0 1 2 did not end within 0.6 s: rank 0 arrived, ranks 1 2 did not",
       "rank 1: [comm] receive of 12 bytes from rank 2 to rank 1 did not end within 0.6 s: rank 1 arrived, "
       "rank 2 did not"});
}

// As if each rank were on a separate node: state is exchanged through files, written only by ranks that have waited too
// long.
TEST_F(OverOneMpi, RanksOfSeveralNodes) {
  expect_failure("elsewhere",
                 {"rank 0: [comm] all_reduce of 4096 bytes among ranks 0 1 2 did not end within 0.6 s: ranks 0 1 "
                  "arrived, rank 2 did not report",
                  "rank 1: [comm] all_reduce of 4096 bytes among ranks 0 1 2 did not end within 0.6 s: ranks 0 1 "
                  "arrived, rank 2 did not report"});
  expect_failure("elsewhere_message",
                 {"rank 0: [comm] send of 12 bytes from rank 0 to rank 1 did not end within 0.6 s: rank 0 "
                  "arrived, rank 1 did not",
                  "rank 1: [comm] receive of 12 bytes from rank 2 to rank 1 did not end within 0.6 s: "
                  "rank 1 arrived, rank 2 did not report"});
}

TEST_P(OverMpi, CallsThatDoNotMatch) {
  const std::string why =
      "[comm] internal error: rank 0 calls all_reduce of 16 bytes (max of fp64), rank 1 all_reduce of 16 bytes (sum of "
      "fp32)";
  expect_failure("mismatch", {"rank 0: " + why, "rank 1: " + why, "rank 2: " + why});
}

TEST_F(OverOneMpi, AMessageOfAnotherLength) {
  const std::string why = "[comm] internal error: rank 0 calls send of 5 bytes, rank 1 receive of 16 bytes";
  expect_failure("length",
                 {"rank 0: [comm] rank 1 ended: " + why, "rank 1: " + why, "rank 2: [comm] rank 1 ended: " + why});
}

TEST_F(OverOneMpi, GroupsThatAreNotMade) {
  const std::string timeout =
      "[comm] making the group of ranks 0 1 2 did not end within 0.6 s: ranks 0 1 arrived, rank 2 did not";
  expect_failure("nobody", {"rank 0: " + timeout, "rank 1: " + timeout});
  const std::string disagreement =
      "[comm] ranks do not agree on a group: rank 0 asks for ranks 0 1, rank 1 for ranks 0 1 2";
  const Result result = run_ranks(mpi, 3, "groups", "3");
  EXPECT_NE(result.code, 0) << result.all;
  // The second may learn of it from the end of the first.
  for (const auto& line : result.lines) EXPECT_TRUE(line.ends_with(disagreement)) << result.all;
  EXPECT_EQ(result.lines.size(), 3u) << result.all;
}

INSTANTIATE_TEST_SUITE_P(Mpi, OverMpi, ::testing::ValuesIn(kMpis), [](const auto& p) { return p.param.name; });

TEST(MpiWorld, WithoutAModule) {
  const std::string empty = ::testing::TempDir() + "/no_mpi";
  std::filesystem::create_directories(empty + "/bin");
  std::filesystem::copy_file(here() / "comm_rank", empty + "/bin/comm_rank",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(run(empty + "/bin/comm_rank table").all,
            "[comm] this build has no MPI: install libopenmpi-dev or libmpich-dev and build again, or use transport = "
            "\"threads\"\n");
  EXPECT_EQ(run("env KINTSUGI_MPI_MODULE=/no/such.so " + empty + "/bin/comm_rank table").all,
            "[comm] the MPI module cannot be loaded: /no/such.so: cannot open shared object file: No such file or "
            "directory\n");
  if (std::filesystem::exists(here() / kMpis[0].module)) {
    std::filesystem::copy_file(here() / kMpis[0].module, empty + "/" + kMpis[0].module,
                               std::filesystem::copy_options::overwrite_existing);
    EXPECT_EQ(run("env PMI_RANK=0 PMI_SIZE=1 " + empty + "/bin/comm_rank table").all,
              "[comm] this run was started by MPICH, and this build has only Open MPI: install libmpich-dev and build "
              "again, or start it by Open MPI\n");
  }
  std::filesystem::remove_all(empty);
}

}  // namespace kintsugi::comm::mpi_world_test
