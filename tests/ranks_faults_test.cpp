// Runs on several ranks as processes, under each MPI that is installed, and their faults: every process ends with a
// nonzero code, and the error is printed once.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <thread>

#include "kintsugi/base/file.h"
#include "tests/mpi_launch.h"
#include "tests/paths.h"
#include "tests/patterns.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::ranks_faults_test {
namespace {

const std::string kEndless = "train.steps=1000000 checkpoint.every=0 train.evaluate_every=0 parallel.timeout_seconds=5";

class RanksThatAreProcesses : public UnderMpi, protected RanksFolder {
 protected:
  static std::string launcher(int ranks) { return GetParam().run + " -n " + std::to_string(ranks); }

  Ended launch(int ranks, const std::string& arguments, const std::string& before = ":") {
    return run_kintsugi(folder.path(), arguments, before, launcher(ranks));
  }
  // Two ranks; `before` starts the second.
  Ended launch_two(const std::string& first, const std::string& second, const std::string& before = "",
                   const std::string& binary = kintsugi_command()) {
    return launch(1, first + " : -n 1 " + before + " " + binary + " " + second);
  }

  // `changing`: text that differs from run to run, shown as #.
  void expect_failure(const Ended& ended, const std::string& lines, const std::string& changing = "") {
    EXPECT_NE(ended.code, 0);
    const std::string said = complaint(ended.err);
    EXPECT_EQ(changing.empty() ? said : replaced(said, changing, "#"), lines);
    EXPECT_EQ(ended.out.find("done"), std::string::npos) << ended.out;
    expect_no_process();
  }
  // Some launchers end before the processes that they kill.
  void expect_no_process() {
    for (int i = 0; i < 500 && !ranks_in(folder.path()).empty(); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    EXPECT_TRUE(ranks_in(folder.path()).empty());
  }

  // Sends a signal to the last of two ranks during training; checks how and when the launcher ends.
  Ended signal_one(int signal) {
    Process process(folder.path(), arguments("run", "data=2", kEndless), ":", launcher(2));
    EXPECT_TRUE(process.wait_for([&] { return steps("run") > 3; }));
    const std::map<int, pid_t> ranks = ranks_in(folder.path());
    EXPECT_EQ(ranks.size(), 2u);
    if (!ranks.contains(1)) return {};
    ::kill(ranks.at(1), signal);
    const auto start = std::chrono::steady_clock::now();
    const Ended ended = process.wait();
    EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(45));
    return ended;
  }
};

// For results that do not depend on how a launcher ends processes.
class RanksUnderOneMpi : public RanksThatAreProcesses {};

std::vector<Mpi> one_mpi() {
  return {is_there(kMpis[1]) ? kMpis[1] : kMpis[0]};
}

}  // namespace

// MPI moves the bytes and we add in rank order, as between threads.
TEST_P(RanksThatAreProcesses, HaveTheBitsOfThreads) {
  const std::string layout = "data=2 tensor=2 zero=3 sequence_parallel=true";
  const Ended threads = run_kintsugi(folder.path(), arguments("threads", layout));
  EXPECT_EQ(threads.code, 0) << threads.err;
  const Ended ended = launch(4, arguments("processes", layout));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(complaint(ended.err), "");
  EXPECT_EQ(difference("threads", "processes", 0), "");
  std::string out = threads.out;
  for (size_t at = 0; (at = out.find("threads", at)) != std::string::npos;) out.replace(at, 7, "processes");
  EXPECT_EQ(ended.out, out);
}

TEST_P(RanksUnderOneMpi, AreAsManyAsThePlanNeeds) {
  expect_failure(
      launch(2, arguments("run", "data=2 tensor=2")),
      "error: [train] the plan needs 4 ranks (data=2 tensor=2), 2 were started; start 4, or change the sizes "
      "in [parallel]\n");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

TEST_P(RanksUnderOneMpi, HaveOneConfiguration) {
  expect_failure(launch_two(arguments("run", "data=2"), arguments("run", "data=2", "train.seed=5")),
                 "error: [train] rank 1 has another configuration than rank 0: \"train.seed = 5\" instead of "
                 "\"train.seed = 1\"; start all ranks with one\n");
}

// Each rank in its own folder, where files of the same name and size contain the same ids in another order.
TEST_P(RanksUnderOneMpi, HaveOneCorpusAndOneModel) {
  const std::string there = "env -C other", changing = "[0-9a-f]{16}";
  const std::string sets = "train.steps=1 train.warmup_steps=0 train.evaluate_every=0";
  fs::create_directory(folder / "other");
  fs::copy(folder / "run.toml", folder / "other/run.toml");
  const Ended prepared = run_kintsugi(folder.path(), "prepare reversed.txt --tokenizer bytes --output other/corpus",
                                      "tac text.txt > reversed.txt");
  ASSERT_EQ(prepared.code, 0) << prepared.err;
  ASSERT_EQ(fs::file_size(folder / "corpus/train.bin"), fs::file_size(folder / "other/corpus/train.bin"));
  for (const char* layout : {"data=2", "tensor=2", "pipe=2"}) {
    SCOPED_TRACE(layout);
    expect_failure(launch_two(arguments(std::string("run_") + layout, layout, sets),
                              arguments(std::string("run_") + layout, layout, sets), there),
                   "error: [train] rank 1 has another token file or tokenizer than rank 0: \"corpus/train: fingerprint "
                   "#\" instead of \"corpus/train: fingerprint #\"; start all ranks with one\n",
                   changing);
  }
  for (const char* where : {"", "other"}) ASSERT_EQ(run_kintsugi(folder / where, arguments("one", "", sets)).code, 0);
  const std::string evaluate = "evaluate --ranks 2 --data corpus/validation ";
  const std::string one = (folder / "one").string();
  expect_failure(launch_two(evaluate + one, evaluate + one, there),
                 "error: [evaluate] rank 1 has another data file than rank 0: \"corpus/validation, 105 samples, "
                 "fingerprint #\" instead of \"corpus/validation, 105 samples, fingerprint #\"; start all ranks with "
                 "one\n",
                 changing);
  expect_failure(launch_two(evaluate + "one", evaluate + "one", there),
                 "error: [checkpoint] rank 1 has another checkpoint than rank 0: \"one/step_00000001: checksum #\" "
                 "instead of \"one/step_00000001: checksum #\"; start all ranks with one\n",
                 changing);
}

// Each rank with its own copy of a Hugging Face folder; one weight of one copy has other bytes.
TEST_P(RanksUnderOneMpi, HaveOneFolderOfWeights) {
  const std::string train = arguments("one", "", "train.steps=1 train.warmup_steps=0 train.evaluate_every=0");
  ASSERT_EQ(run_kintsugi(folder.path(), train).code, 0);
  const Ended exported = run_kintsugi(folder.path(), "export one hf");
  ASSERT_EQ(exported.code, 0) << exported.err;
  fs::create_directory(folder / "other");
  fs::copy(folder / "hf", folder / "other/hf");
  const std::string generate = "generate hf --ranks 2 --prompt a --length 2", there = "env -C other";
  const Ended same = launch_two(generate, generate, there);
  EXPECT_EQ(same.code, 0) << same.err;
  {
    std::fstream file(folder / "other/hf/model.safetensors", std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(-4, std::ios::end);
    file.write("\0\0\0\0", 4);
  }
  expect_failure(launch_two(generate, generate, there),
                 "error: [model] rank 1 has another Hugging Face folder than rank 0: \"model.safetensors: checksum #\" "
                 "instead of \"model.safetensors: checksum #\"; start all ranks with one\n",
                 "[0-9a-f]{16}");
}

// Inputs that are compared before a rank uses them.
TEST_P(RanksUnderOneMpi, AreStartedByOneCommand) {
  const std::string other = "; start all ranks with one\n";
  EXPECT_EQ(launch(2, arguments("run", "data=2")).code, 0);
  const std::string longer = arguments("run", "data=2", "train.steps=14");
  expect_failure(
      launch_two(longer, longer + " --resume"),
      "error: [train] rank 1 has another command than rank 0: \"train --resume\" instead of \"train\"" + other);
  expect_failure(
      launch_two(longer + " --resume", longer),
      "error: [train] rank 1 has another command than rank 0: \"train\" instead of \"train --resume\"" + other);
  expect_failure(
      launch_two(longer + " --resume", "evaluate run --set parallel.data=2"),
      "error: [train] rank 1 has another command than rank 0: \"evaluate run\" instead of \"train --resume\"" + other);
  expect_failure(launch_two(arguments("run", "data=2"), arguments("run", "data=2 tensor=2")),
                 "error: [train] rank 1 has another configuration than rank 0: \"parallel.ranks = 4\" instead of "
                 "\"parallel.ranks = 2\"" +
                     other);
}

// Rank 0 waits within MPI for the other rank, which never starts.
TEST_P(RanksThatAreProcesses, EndWhenOneRunsInOneProcess) {
  expect_failure(
      launch_two(arguments("run", "data=2"), "check run.toml"),
      "error: rank 1: [check] this verb runs in one process, but 2 were started; start it without mpirun or srun\n");
  expect_failure(launch(2, "show corpus/train"),
                 "error: [show] this verb runs in one process, but 2 were started; start it without mpirun or srun\n");
}

TEST_P(RanksThatAreProcesses, EndWhenOneIsAnotherProgram) {
  const Ended ended = launch(1, arguments("run", "data=2", "parallel.timeout_seconds=2") + " : -n 1 sleep 100");
  expect_failure(
      ended,
      "error: [comm] rank 0: the start of MPI did not end within 2 s; did all ranks start, and with the same "
      "verb?\n");
}

// Rank 0 waits within MPI for the other rank, and some launchers would let it.
TEST_P(RanksThatAreProcesses, EndWhenOneCannotBegin) {
  expect_failure(launch_two(arguments("run", "data=2"), arguments("run", "data=2", "train.seed=a")),
                 "error: rank 1: [config] --set: train.seed = \"a\" is a text; it must be an integer from 0 to "
                 "9,223,372,036,854,775,807\n");
}

TEST_P(RanksThatAreProcesses, SayOnceWhatNoneCanBeginWith) {
  expect_failure(launch(2, arguments("run", "data=3")),
                 "error: [config] --set: train.global_batch = 8 is not divisible by mesh axis \"data\" of size 3; "
                 "nearest: 6, 9\n");
  expect_failure(launch(2, arguments("run", "data=2"), "export KINTSUGI_MPI_MODULE=/nonexistent"),
                 "error: [comm] the MPI module cannot be loaded: /nonexistent: cannot open shared object file: No such "
                 "file or directory\n");
}

TEST_P(RanksThatAreProcesses, EndWhenOneIsKilled) {
  const Ended ended = signal_one(SIGKILL);
  EXPECT_NE(ended.code, 0);
  EXPECT_EQ(ended.out.find("checkpoint"), std::string::npos) << ended.out;
  expect_no_process();
}

TEST_P(RanksThatAreProcesses, SayWhoStopped) {
  const Ended ended = signal_one(SIGSTOP);
  EXPECT_NE(ended.code, 0);
  expect_no_process();
  // Open MPI lets a stopped process continue before it ends it, so it may print an error too.
  std::string line = complaint(ended.err);
  const size_t at = line.find("error: [comm] rank 0: ");
  ASSERT_NE(at, std::string::npos) << ended.err;
  line = line.substr(at, line.find('\n', at) - at);
  const std::string tensor = "\\w+ of \"[^\"]+\" over data \\([a-z_.]+(, layer [0-9]+)?\\)";
  const std::string flag = "after step [0-9]+, whether to stop";
  EXPECT_TRUE(
      matches(line, "error: \\[comm\\] rank 0: (" + tensor + "|" + flag +
                        "): \\w+ of [0-9]+ bytes among ranks 0 1 did not end within 5 s: rank 0 arrived, rank 1 (did "
                        "not|arrived and made no progress)"))
      << line;
}

TEST_P(RanksUnderOneMpi, AreOneBinary) {
  fs::copy_file(kintsugi_command(), folder / "other");
  std::ofstream(folder / "other", std::ios::app) << "x";
  const std::string module = (fs::path(kintsugi_command()).parent_path().parent_path() / GetParam().module).string();
  const Ended ended = launch_two(arguments("run", "data=2"), arguments("run", "data=2"),
                                 "env KINTSUGI_MPI_MODULE=" + module, (folder / "other").string());
  expect_failure(
      ended,
      "error: [train] rank 1 has another binary than rank 0: \"checksum #\" instead of \"checksum #\"; start "
      "all ranks with one\n",
      "[0-9a-f]{16}");
}

TEST_P(RanksUnderOneMpi, SayOnceWhatAllFind) {
  expect_failure(
      launch(2, arguments("a", "data=2",
                          "train.learning_rate=1e39 train.warmup_steps=0 data.validation= train.evaluate_batches=0 "
                          "train.evaluate_every=0 checkpoint.every=0")),
      "error: [train] step 2: the loss is not finite; first bad value: weight embedding.table, before the "
      "step; nothing was saved yet: try a smaller learning_rate\n");
  fs::resize_file(folder / "corpus/train.bin", 1000);
  expect_failure(
      launch(2, arguments("b", "data=2")),
      "error: [tokens] \"corpus/train.bin\" has 1000 bytes, but its index describes #: it is cut short; make "
      "it again with prepare\n",
      "[0-9]{5,}");
}

TEST_P(RanksUnderOneMpi, OneRunsOutOfDisk) {
  // Files of more than 8 MiB, since the limit also applies to what MPI writes.
  const std::string sets = "model.embed=256 model.layers=3 checkpoint.every=2 train.evaluate_every=2";
  EXPECT_EQ(launch(2, arguments("run", "data=2", sets + " train.steps=2")).code, 0);
  const std::string more = arguments("run", "data=2", sets + " train.steps=4 --resume --set");
  expect_failure(launch_two(more, more + "'", "sh -c 'ulimit -f 16384; exec"),
                 "error: [checkpoint] rank 1: step 4 is not saved, earlier checkpoints are untouched: cannot write "
                 "\"run/.part-step_00000004/rank_00001.safetensors\": File too large\n");
  EXPECT_FALSE(fs::exists(folder / "run/step_00000004"));
  const Ended resumed = launch(2, more);
  EXPECT_EQ(resumed.code, 0);
  EXPECT_NE(resumed.err.find("resumed at step 2 from run/step_00000002\n"), std::string::npos) << resumed.err;
  EXPECT_EQ(run_kintsugi(folder.path(), arguments("whole", "data=2", sets + " train.steps=4")).code, 0);
  EXPECT_EQ(difference("whole", "run", 0), "");
}

// A signal to one rank stops all, after the same step.
TEST_P(RanksUnderOneMpi, OneIsAskedToStop) {
  Process process(folder.path(), arguments("run", "data=2", kEndless), ":", launcher(2));
  ASSERT_TRUE(process.wait_for([&] { return steps("run") > 3; }));
  const std::map<int, pid_t> ranks = ranks_in(folder.path());
  ASSERT_TRUE(ranks.contains(1));
  ::kill(ranks.at(1), SIGTERM);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  const int64_t step = steps("run");
  EXPECT_EQ(ended.out, fmt::format("checkpoint run/step_{0:08}\nstopped after step {0} "
                                   "(signal); continue with: kintsugi train run.toml --resume --set train.folder=run {1} "
                                   "parallel.data=2\n",
                                   step, kEndless));
  const std::string sets = fmt::format("train.steps={} --resume --set", step + 1);
  const Ended resumed = run_kintsugi(folder.path(), arguments("run", "tensor=2", sets));
  EXPECT_EQ(resumed.code, 0) << resumed.err;
  EXPECT_NE(resumed.err.find(fmt::format("resumed at step {0} from run/step_{0:08}\n", step)), std::string::npos);
}

INSTANTIATE_TEST_SUITE_P(Mpi, RanksThatAreProcesses, testing::ValuesIn(kMpis), name_of_mpi);
INSTANTIATE_TEST_SUITE_P(Mpi, RanksUnderOneMpi, testing::ValuesIn(one_mpi()), name_of_mpi);

TEST(RanksOverMpi, WithoutAModule) {
  TemporaryFolder folder;
  fs::create_directories(folder / "a/bin");
  fs::copy_file(kintsugi_command(), folder / "a/bin/kintsugi");
  std::ofstream(folder / "run.toml") << "[data]\ntrain = \"nowhere\"\n[parallel]\ntransport = \"mpi\"\n";
  const std::string command = "cd '" + folder.path().string() + "' && a/bin/kintsugi train run.toml 2> said";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 1) << status;
  EXPECT_EQ(base::read_file(folder / "said"),
            "error: [comm] this build has no MPI: install libopenmpi-dev or libmpich-dev and build again, or use "
            "transport = \"threads\"\n");
}

}  // namespace kintsugi::tests::ranks_faults_test
