// Outputs of the command: no failure to write is silent, and nothing but a previous result is replaced.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>

#include "kintsugi/base/file.h"
#include "tests/patterns.h"
#include "tests/process.h"

namespace kintsugi::tests::output_test {
namespace {

// The run of one step that all tests use.
class OutputFiles : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    std::ofstream text(*folder / "text.txt");
    for (int i = 0; i < 300; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(*folder / "run.toml")
        << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
           "[train]\nfolder = \"run\"\nsteps = 1\nglobal_batch = 2\nsequence = 16\n[parallel]\nthreads = 1\n";
    ASSERT_EQ(kintsugi("prepare text.txt --tokenizer bytes --output corpus").code, 0);
    ASSERT_EQ(kintsugi("train run.toml").code, 0);
  }
  static void TearDownTestSuite() { delete folder; }

  static Ended kintsugi(const std::string& arguments, const std::string& before = ":",
                        const std::string& redirect = "") {
    // The shell of `redirect` starts the command; its redirections apply last.
    const std::string launcher = redirect.empty() ? "" : "sh -c 'exec \"$0\" \"$@\" " + redirect + "'";
    return run_kintsugi(folder->path(), arguments, before, launcher);
  }

  // Without lines that are not errors.
  static void expect_error(const Ended& ended, const std::string& line, const std::string& about) {
    const std::string progress = "(tokenizing:|warning:)[^\n]*\n";
    EXPECT_EQ(ended.code, 1) << about;
    EXPECT_EQ(replaced(ended.err, progress, ""), "error: " + line + "\n") << about;
  }

  static std::string text_of(const fs::path& name) { return base::read_file(*folder / name); }

  static TemporaryFolder* folder;
};

TemporaryFolder* OutputFiles::folder = nullptr;

}  // namespace

TEST_F(OutputFiles, AFullDisk) {
  for (const std::string arguments :
       {"--help", "--version", "", "train --help", "check run.toml", "plan run.toml", "explain run.toml",
        "explain run.toml --pass plan", "compare run.toml --ranks 2 --steps 1", "evaluate run --data corpus/train",
        "generate run --length 2", "generate run --length 2 --ranks 2", "show run", "show corpus/train",
        "train run.toml --set train.folder=full", "prepare text.txt --tokenizer bytes --output full_corpus"})
    expect_error(kintsugi(arguments, ":", ">/dev/full"), "[output] cannot write to stdout: No space left on device",
                 arguments);
  EXPECT_TRUE(fs::exists(*folder / "full/step_00000001"));  // the run itself is whole
}

// For each verb on the first page: whole lines of at most 80 columns.
TEST_F(OutputFiles, HelpFitsATerminal) {
  const auto page_of = [&](const std::string& verb) {
    const Ended ended = run_kintsugi(folder->path(), verb + " --help");
    EXPECT_EQ(ended.code, 0) << verb;
    EXPECT_TRUE(ended.out.ends_with('\n')) << verb;
    std::istringstream lines(ended.out);
    for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 80u) << verb << ": " << line;
    return ended.out;
  };
  const std::string first = page_of("");
  std::istringstream verbs(first.substr(first.find("\nVerbs:\n") + 8));
  int count = 0;
  std::string line;
  std::getline(verbs, line);
  for (; std::getline(verbs, line) && !line.empty(); ++count)
    if (line.starts_with("  ") && line[2] != ' ') page_of(line.substr(2, line.find(' ', 2) - 2));
  EXPECT_GT(count, 12) << first;
}

TEST_F(OutputFiles, AClosedStdout) {
  for (const std::string arguments :
       {"--help", "plan run.toml", "generate run --length 2", "train run.toml --set train.folder=closed"})
    expect_error(kintsugi(arguments, ":", ">&-"), "[output] cannot write to stdout: Bad file descriptor", arguments);
  for (const auto& entry : fs::recursive_directory_iterator(*folder / "closed"))
    EXPECT_TRUE(entry.is_directory() || base::read_file(entry.path()).find("done: 1 steps") == std::string::npos)
        << entry.path();
  EXPECT_EQ(text_of("closed/config.toml").substr(0, 23), "# The configuration of ");
  // Nothing reads the other outputs.
  EXPECT_EQ(kintsugi("plan run.toml --set train.warmup_steps=9", ":", "2>&- <&-").code, 0);
}

TEST_F(OutputFiles, AReaderThatLeaves) {
  // Greedy text of such a small model repeats endlessly; sampled text may end before the reader does.
  const Ended ended = kintsugi("generate run --length 100000 --temperature 0",
                               "mkfifo pipe && { head -c 1 pipe > /dev/null & }", "> pipe");
  EXPECT_EQ(ended.signal, SIGPIPE);
  EXPECT_EQ(ended.err, "");
}

TEST_F(OutputFiles, NoInputIsReplaced) {
  fs::create_symlink("run.toml", *folder / "link.csv");
  const std::string toml = text_of("run.toml");
  std::ofstream(*folder / "machine.toml") << "nodes";
  std::ofstream(*folder / "ids") << "1 2 3\n";
  fs::create_symlink("run/step_00000001/new", *folder / "broken");
  fs::create_directory(*folder / "data");
  std::ofstream(*folder / "data" / "piqa.jsonl") << "{}\n";
  fs::copy_file(*folder / "run.toml", *folder / "other.toml");
  for (const auto& [arguments, said] : std::vector<std::pair<std::string, std::string>>{
           {"plan run.toml --csv run.toml", "[plan] --csv \"run.toml\" is a file of this run; name another"},
           {"plan run.toml --svg link.csv",
            "[plan] --svg \"link.csv\" is \"run.toml\", a file of this run; name another"},
           {"plan run.toml --csv x --svg x", "[plan] --csv and --svg are one file, \"x\"; name two"},
           {"explain run.toml --svg corpus/train.bin",
            "[explain] --svg \"corpus/train.bin\" is a file of this run; name another"},
           {"explain run.toml --svg corpus/tokenizer.json",
            "[explain] --svg \"corpus/tokenizer.json\" is a file of this run; name another"},
           {"compare run.toml --ranks 2 --csv run/metrics.jsonl",
            "[compare] --csv \"run/metrics.jsonl\" is a file of this run; name another"},
           {"plan run.toml --csv run/step_00000001/rank_00000.safetensors",
            "[plan] --csv \"run/step_00000001/rank_00000.safetensors\" is a file of this run; name another"},
           {"plan run.toml --set train.folder=new train.init_from=run --csv run/config.toml",
            "[plan] --csv \"run/config.toml\" is a file of this run; name another"},
           {"plan run.toml --cluster machine.toml --trace machine.toml",
            "[plan] --trace \"machine.toml\" is a file of this run; name another"},
           {"plan run.toml --set parallel.cluster=machine.toml --csv machine.toml",
            "[plan] --csv \"machine.toml\" is a file of this run; name another"},
           {"scale run.toml --on 1 --cluster machine.toml --svg machine.toml",
            "[scale] --svg \"machine.toml\" is a file of this run; name another"},
           // Files of other runs, and similar ones.
           {"plan run.toml --csv other.toml",
            "[plan] --csv \"other.toml\" would replace the configuration of a run; name another file"},
           {"plan run.toml --set train.folder=new --csv run/metrics.jsonl",
            "[plan] --csv \"run/metrics.jsonl\" would replace a file of a run; name another file"},
           {"plan run.toml --set train.folder=new --svg run/step_00000001/rank_00000.safetensors",
            "[plan] --svg \"run/step_00000001/rank_00000.safetensors\" would replace a file of a checkpoint; name "
            "another file"},
           {"evaluate run --ids ids --dump run/step_00000001/rank_00000.safetensors",
            "[evaluate] --dump \"run/step_00000001/rank_00000.safetensors\" would replace a file of a checkpoint; name "
            "another file"},
           // New files that would be read as a part of a folder.
           {"evaluate run --ids ids --dump run/step_00000001/new",
            "[evaluate] --dump \"run/step_00000001/new\" would add a file to a checkpoint; name another file"},
           {"plan run.toml --csv broken",
            "[plan] --csv \"broken\" would add a file to a checkpoint; name another file"},
           {"plan run.toml --csv run/ended.json.csv --svg corpus/vocab.json",
            "[plan] --svg \"corpus/vocab.json\" would add a file to a corpus; name another file"},
           {"evaluate run --task piqa --data data --dump data/piqa.jsonl",
            "[evaluate] --dump \"data/piqa.jsonl\" is a file of this run; name another"},
           {"evaluate run --task piqa --data data --dump run/metrics.jsonl",
            "[evaluate] --dump \"run/metrics.jsonl\" would replace a file of a run; name another file"},
           {"bench machine --into other.toml",
            "[bench] --into \"other.toml\" would replace the configuration of a run; name another file"}})
    expect_error(kintsugi(arguments), said, arguments);
  EXPECT_EQ(text_of("run.toml"), toml);
  EXPECT_EQ(text_of("other.toml"), toml);
  EXPECT_EQ(text_of("machine.toml"), "nodes");
  EXPECT_TRUE(fs::is_symlink(*folder / "link.csv"));
  EXPECT_EQ(kintsugi("plan run.toml --csv run/memory.csv").code, 0);
  EXPECT_EQ(kintsugi("plan run.toml --csv run/memory.csv").code, 0);  // what is no file of the run is replaced

  const std::string own = "out/train.json";
  fs::create_directory(*folder / "out");
  fs::copy_file(*folder / "text.txt", *folder / own);
  expect_error(kintsugi("prepare out/train.json --tokenizer bytes --output out --force"),
               "[prepare] \"out/train.json\" is an input, and the output would replace it; name another --output", own);
  EXPECT_EQ(text_of(own), text_of("text.txt"));
}

TEST_F(OutputFiles, ResultsGoWhereTheUserSays) {
  const std::string csv = [] {
    EXPECT_EQ(kintsugi("plan run.toml --csv plain.csv").code, 0);
    return text_of("plain.csv");
  }();
  EXPECT_EQ(csv.substr(0, 11), "rank,stage,");
  fs::create_directory(*folder / "there");
  fs::create_symlink("there/result.csv", *folder / "result.csv");
  EXPECT_EQ(kintsugi("plan run.toml --csv result.csv").code, 0);
  EXPECT_TRUE(fs::is_symlink(*folder / "result.csv"));
  EXPECT_EQ(text_of("there/result.csv"), csv);
  EXPECT_EQ(kintsugi("plan run.toml --csv fifo.csv", "mkfifo fifo.csv && { cat fifo.csv > read.csv & }").code, 0);
  EXPECT_TRUE(fs::is_fifo(*folder / "fifo.csv"));
  for (int i = 0; i < 500 && text_of("read.csv") != csv; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(text_of("read.csv"), csv);
  const std::string out = kintsugi("plan run.toml --csv /dev/stdout").out;
  EXPECT_TRUE(out.starts_with("stages\n") && out.ends_with(csv)) << out;
}

TEST_F(OutputFiles, ConfigurationsFromPipes) {
  const std::string direct = kintsugi("plan run.toml").out;
  EXPECT_EQ(kintsugi("plan /dev/stdin", ":", "< run.toml").out, direct);
  EXPECT_EQ(kintsugi("plan toml", "mkfifo toml && { cat run.toml > toml & } && sleep 0.2").out, direct);
  expect_error(kintsugi("plan unused", "mkfifo unused"),
               "[file] \"unused\" is a FIFO into which no process writes; start the writer first", "unused");
  expect_error(kintsugi("check /dev/zero"), "[file] \"/dev/zero\" has more than 4.0 MiB; a configuration has less", "");
  expect_error(kintsugi("generate run --prompt-file /dev/zero"),
               "[file] \"/dev/zero\" has more than 64.0 MiB; a prompt has less", "");
}

TEST_F(OutputFiles, TheSavedConfigurationIsNotWarnedOf) {
  const Ended ended = kintsugi("check run/config.toml");
  EXPECT_EQ(ended.code, 0);
  EXPECT_EQ(ended.err, "");
}

TEST_F(OutputFiles, RanksAndTimes) {
  for (const std::string arguments :
       {"generate run --ranks 1000000", "evaluate run --data corpus/train --ranks 1000000",
        "compare run.toml --ranks 1000000 --global-batch 1000000",
        "train run.toml --ranks 1000000 --set train.folder=many train.global_batch=1000000"})
    expect_error(kintsugi(arguments, "ulimit -v 1000000"),
                 "[comm] 1,000,000 ranks cannot be threads of one process, which has at most 1,024; start them as "
                 "processes, by mpirun or srun",
                 arguments);
  EXPECT_FALSE(fs::exists(*folder / "many"));
  for (const std::string seconds : {"1e10", "1e300"}) {
    const Ended ended =
        kintsugi("train run.toml --ranks 2 --set train.folder=t" + seconds + " parallel.timeout_seconds=" + seconds);
    EXPECT_EQ(ended.code, 0) << ended.err;
  }
}

}  // namespace kintsugi::tests::output_test
