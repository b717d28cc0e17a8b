// Output for people, and behaviour at the limits of the environment: names with terminal control sequences, full disks,
// resource limits, clocks, and run files of an unexpected kind.
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>
#include <sstream>

#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "tests/process.h"

namespace kintsugi::tests::console_test {
namespace {

// A finished run of two steps that tests inspect, resume and copy.
class Console : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    folder = new TemporaryFolder;
    std::ofstream text(*folder / "text.txt");
    for (int i = 0; i < 300; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(*folder / "run.toml")
        << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
           "[train]\nfolder = \"run\"\nsteps = 2\nglobal_batch = 2\nsequence = 16\n[parallel]\nthreads = 1\n";
    ASSERT_EQ(kintsugi("prepare text.txt --tokenizer bytes --output corpus").code, 0);
    ASSERT_EQ(kintsugi("train run.toml").code, 0);
  }
  static void TearDownTestSuite() { delete folder; }

  static Ended kintsugi(const std::string& arguments, const std::string& before = ":",
                        const std::string& launcher = "") {
    return run_kintsugi(folder->path(), arguments, before, launcher);
  }
  // A copy of the run that a test may modify.
  static fs::path copy_of_run(const std::string& name) {
    fs::copy(*folder / "run", *folder / name, fs::copy_options::recursive);
    return *folder / name;
  }
  static std::string resume(const std::string& name, int steps) {
    return "train run.toml --resume --set train.folder=" + name + " train.steps=" + std::to_string(steps);
  }
  static size_t widest(const std::string& text) {
    std::istringstream lines(text);
    size_t most = 0;
    for (std::string line; std::getline(lines, line);) most = std::max(most, line.size());
    return most;
  }

  static TemporaryFolder* folder;
};

TemporaryFolder* Console::folder = nullptr;

// Colours, a title, a C1 code, a bidirectional override, and invalid UTF-8.
const std::string kEvil = "e\x1b[31mvil\x1b]0;t\x07\xc2\x9b\xe2\x80\xae\x9b";

void expect_tame(const Ended& ended, const std::string& about) {
  for (const std::string& text : {ended.out, ended.err, ended.progress}) {
    for (const char* bad : {"\x1b", "\x07", "\xc2\x9b", "\xe2\x80\xae", "\r"})
      EXPECT_EQ(text.find(bad), text.npos) << about << ": " << base::one_line(text, 2000);
    EXPECT_TRUE(base::is_utf8(text)) << about << ": " << base::one_line(text, 2000);
  }
}

// The terminal output of a shell command; `status` as from waitpid.
std::string read_terminal(const fs::path& in, const std::string& command, int& status) {
  int from = -1;
  const pid_t pid = ::forkpty(&from, nullptr, nullptr, nullptr);
  if (pid == 0) {
    if (::chdir(in.c_str()) != 0) ::_exit(126);
    ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
    ::_exit(127);
  }
  std::string text;
  char buffer[4096];
  for (ssize_t n; (n = ::read(from, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
  ::close(from);
  ::waitpid(pid, &status, 0);
  return text;
}

}  // namespace

TEST_F(Console, NamesCannotControlATerminal) {
  fs::copy(*folder / "text.txt", *folder / (kEvil + ".txt"));
  const std::string name = "'" + kEvil + "'";
  for (const std::string& arguments :
       {"prepare '" + kEvil + ".txt' --tokenizer bytes --output " + name, "show " + name + "/train",
        "train run.toml --set train.folder='run" + kEvil + "' ", "evaluate 'run" + kEvil + "' --data corpus/train",
        "generate 'run" + kEvil + "' --length 1 --prompt x --dtype " + name, "watch 'run" + kEvil + "' --once",
        "status 'run" + kEvil + "'", "show 'run" + kEvil + "'", "show 'run" + kEvil + "' --verify",
        "report 'run" + kEvil + "' --output '" + kEvil + ".html'", "export 'run" + kEvil + "' 'x" + kEvil + "'",
        "plan run.toml --csv '" + kEvil + "/none/p.csv'", "check run.toml --set " + name + "=1",
        "check run.toml --set train." + name + "=1", "check " + name + "/run.toml", "nothing" + name, "train --" + name,
        "check run.toml --set train.folder=" + name})
    expect_tame(kintsugi(arguments), base::one_line(arguments));
}

// Generated text is escaped on a terminal and written byte by byte to a file.
TEST_F(Console, TextsCannotControlATerminal) {
  int status = 0;
  const std::string text = read_terminal(
      *folder / ".", kintsugi_command() + " generate run --length 1 --prompt \"$(printf 'a\\033[31mb')\"", status);
  EXPECT_EQ(status, 0);
  EXPECT_NE(text.find("a\\x1b[31mb"), text.npos) << text;
  EXPECT_TRUE(kintsugi("generate run --length 1 --prompt \"$(printf 'a\\033[31mb')\"").out.starts_with("a\x1b[31mb"));
}

// A run is not "done" unless all its files are written.
TEST_F(Console, TheEndOfARunIsWritten) {
  const fs::path run = copy_of_run("no_end");
  fs::remove(run / "ended.json");
  fs::create_directories(run / "ended.json/in the way");
  const Ended ended = kintsugi(resume("no_end", 3));
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("ended.json"), std::string::npos) << ended.err;
  EXPECT_EQ(ended.out.find("done"), std::string::npos) << ended.out;
  EXPECT_TRUE(fs::exists(run / "step_00000003"));
}

// With a limit on file size, no output is left partially written, and no temporary file remains.
TEST_F(Console, OutputsAreWholeOrNotThere) {
  fs::create_directory(*folder / "small");
  for (const std::string& arguments :
       {std::string("plan run.toml --csv small/p.csv --svg small/p.svg"),
        std::string("report run --output small/r.html"), std::string("explain run.toml --svg small/e.svg"),
        std::string("prepare text.txt --tokenizer bytes --output small/deep/corpus")}) {
    const Ended ended = kintsugi(arguments, "ulimit -f 0");
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_TRUE(fs::is_empty(*folder / "small")) << arguments;
  }
}

// The next process removes temporary files of a killed one, but not those of a running one.
TEST_F(Console, PartsOfKilledProcessesGo) {
  fs::create_directory(*folder / "parts");
  const std::string mine = ".kintsugi-" + std::to_string(::getpid()) + "-0.part";
  for (const std::string& name : {std::string(".kintsugi-4194304-0.part"), mine, std::string(".kintsugi-x-0.part")})
    std::ofstream(*folder / "parts" / name) << "part";
  ASSERT_EQ(kintsugi("plan run.toml --csv parts/p.csv").code, 0);
  EXPECT_FALSE(fs::exists(*folder / "parts/.kintsugi-4194304-0.part"));
  EXPECT_TRUE(fs::exists(*folder / "parts" / mine));
  EXPECT_TRUE(fs::exists(*folder / "parts/.kintsugi-x-0.part"));
}

TEST_F(Console, MetricsThatAreSomethingElse) {
  const fs::path run = copy_of_run("odd");
  const fs::path metrics = run / "metrics.jsonl";
  const auto try_all = [&](const std::string& what) {
    for (const std::string& arguments :
         {std::string("watch odd --once"), std::string("status odd"), resume("odd", 3)}) {
      const Ended ended = kintsugi(arguments, "ulimit -v 4000000", "timeout 20");
      EXPECT_TRUE(ended.code == 0 || ended.code == 1) << what << " " << arguments << ended.code;
      EXPECT_NE((ended.out + ended.err).find(what), std::string::npos) << arguments << ended.out << ended.err;
    }
  };
  fs::remove(metrics);
  ASSERT_EQ(::mkfifo(metrics.c_str(), 0600), 0);
  try_all("not a regular file");
  fs::remove(metrics);
  fs::create_symlink("/dev/zero", metrics);
  try_all("not a regular file");
  fs::remove(metrics);
  std::ofstream(metrics).close();
  fs::resize_file(metrics, uint64_t{6} << 30);
  try_all("6.0 GiB");
}

// If a prompt exceeds the context, the command says what the model does not see.
TEST_F(Console, APromptLongerThanTheContext) {
  const Ended one = kintsugi("generate run --length 1 --prompt " + std::string(40, 'x'));
  EXPECT_NE((one.err + one.progress).find("40 tokens, more than the context of 16: the first 24 are dropped"),
            std::string::npos)
      << one.err;
  EXPECT_EQ(kintsugi("generate run --length 1 --prompt xx").err.find("dropped"), std::string::npos);
}

// A corrupt line is reported, and the lines after it are kept.
TEST_F(Console, ABadLineAmongMetrics) {
  const fs::path metrics = copy_of_run("torn") / "metrics.jsonl";
  const std::string whole = base::read_file(metrics);
  const size_t first = whole.find('\n') + 1;
  std::ofstream(metrics) << whole.substr(0, first) << "{\"step\":1,\"lo\n" << whole.substr(first) << "{\"step\":3,\n";
  const Ended ended = kintsugi(resume("torn", 3));
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("the first in line 2"), std::string::npos) << ended.err;
  const std::string now = base::read_file(metrics);
  EXPECT_TRUE(now.starts_with(whole.substr(0, first) + "{\"step\":1,\"lo\n" + whole.substr(first) + "{\"step\":3,\""))
      << now;
}

TEST_F(Console, ErrorsAreNotLong) {
  std::string shape;
  for (int i = 0; i < 1000; ++i) shape += "1234567,";
  for (const std::string& arguments : {"check run.toml --set train.steps=" + shape, "check " + shape,
                                       "train --" + shape, "show " + std::string(3000, 'x')}) {
    const Ended ended = kintsugi(arguments);
    EXPECT_EQ(ended.code, 1);
    EXPECT_LE(ended.err.size(), 420u) << ended.err;
  }
}

TEST_F(Console, ASmallStackIsEnough) {
  EXPECT_EQ(kintsugi("train run.toml --ranks 2 --set train.folder=stack", "ulimit -s 500").code, 0);
  EXPECT_EQ(kintsugi("plan run.toml", "ulimit -s 300").code, 0);
}

TEST_F(Console, NoFolderForTemporaryFiles) {
  const Ended ended = kintsugi("compare run.toml --ranks 2 --steps 1", "export TMPDIR=/nowhere/at/all");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("TMPDIR=\"/nowhere/at/all\""), std::string::npos) << ended.err;
}

TEST_F(Console, LittleMemoryForTheEmulation) {
  const Ended ended =
      kintsugi("train run.toml --set train.folder=emulated parallel.device=emulated", "ulimit -v 300000");
  EXPECT_EQ(ended.code, 1) << ended.err;
  EXPECT_EQ(ended.err.find("bug"), std::string::npos) << ended.err;
}

// A preloaded library replaces the system's clock: it stops, goes back or jumps.
TEST_F(Console, AnyClock) {
  const fs::path source = *folder / "clock.c", library = *folder / "clock.so";
  std::ofstream(source) << "#define _GNU_SOURCE\n#include <stdlib.h>\n#include <sys/syscall.h>\n#include <time.h>\n"
                           "#include <unistd.h>\n"
                           "int clock_gettime(clockid_t c, struct timespec* t) {\n"
                           "  static long n = 0;\n"
                           "  const char kind = getenv(\"CLOCK\")[0];\n"
                           "  const int r = syscall(SYS_clock_gettime, c, t);\n"
                           "  if (c != CLOCK_MONOTONIC) return r;\n"
                           "  if (kind == 's') t->tv_sec = 1000, t->tv_nsec = 0;\n"
                           "  if (kind == 'b') t->tv_sec -= ++n / 50;\n"
                           "  if (kind == 'j') t->tv_sec += ++n % 2 * 100000;\n"
                           "  return r;\n}\n";
  if (std::system(("cc -shared -fPIC -o " + library.string() + " " + source.string()).c_str()) != 0)
    GTEST_SKIP() << "no C compiler";
  for (const std::string& kind : {std::string("still"), std::string("back"), std::string("jumps")})
    for (const std::string& ranks : {std::string("1"), std::string("2")}) {
      const Ended ended = kintsugi("train run.toml --ranks " + ranks + " --set train.folder=" + kind + ranks,
                                   "export CLOCK=" + kind, "env LD_PRELOAD=" + library.string() + " timeout 60");
      EXPECT_EQ(ended.code, 0) << kind << ranks << ended.err;
    }
}

// A run that cannot start leaves folders unchanged.
TEST_F(Console, FailedStartsLeaveNoFolder) {
  for (const std::string& sets : {std::string("data.train=none"), std::string("model.vocab=3")}) {
    EXPECT_EQ(kintsugi("train run.toml --set train.folder=never/begun/run " + sets).code, 1);
    EXPECT_FALSE(fs::exists(*folder / "never")) << sets;
  }
  EXPECT_EQ(kintsugi("prepare none.txt --tokenizer bytes --output never/made/corpus").code, 1);
  EXPECT_FALSE(fs::exists(*folder / "never"));
}

TEST_F(Console, FitsEightyColumns) {
  for (const std::string& arguments :
       {std::string("check run.toml"), std::string("check run.toml --all"), std::string("plan run.toml --ranks 2"),
        std::string("explain run.toml"), std::string("explain run.toml --pass schedule"),
        std::string("explain run.toml --pass memory"), std::string("explain run.toml --ranks 2 --pass communication"),
        std::string("profile run.toml --ranks 2 --steps 1"), std::string("show run --verify"),
        std::string("show corpus/train"), std::string("devices"), std::string("compare run.toml --ranks 2 --steps 1"),
        std::string("--help"), std::string("plan --help")}) {
    const Ended ended = kintsugi(arguments);
    EXPECT_EQ(ended.code, 0) << arguments << ended.err;
    EXPECT_LE(widest(ended.out), 80u) << arguments << "\n" << ended.out;
  }
}

TEST_F(Console, SummariesComeFirst) {
  const std::string check = kintsugi("check run.toml").out, whole = kintsugi("check run.toml --all").out;
  EXPECT_TRUE(check.starts_with("# the program is valid"));
  EXPECT_LT(std::ranges::count(check, '\n'), 100) << check;
  EXPECT_EQ(check.find("# default\n"), check.npos) << check;
  EXPECT_NE(whole.find("\nlabel_smoothing = "), whole.npos) << whole;
  EXPECT_GT(std::ranges::count(whole, '\n'), 150) << whole;
  EXPECT_TRUE(
      kintsugi("check run.toml --set data.train=[] model.vocab=256").out.starts_with("# NOT checked: the data"));
  EXPECT_TRUE(kintsugi("check run.toml --set data.train=[]").out.starts_with("# NOT checked: the program"));
  const std::string verified = kintsugi("show run --verify").out;
  EXPECT_LT(verified.find("checksums"), verified.find("model  "));
  const std::string outline = kintsugi("explain run.toml --pass schedule").out;
  EXPECT_LT(std::ranges::count(outline, '\n'), 30) << outline;
  EXPECT_EQ(outline.find("+-1"), outline.npos) << outline;
  EXPECT_GT(kintsugi("explain run.toml --pass schedule --all").out.size(), 5 * outline.size());
}

TEST_F(Console, TheOriginOfRanks) {
  EXPECT_NE(kintsugi("check run.toml --ranks 2").out.find("# --ranks\n"), std::string::npos);
  EXPECT_NE(kintsugi("check run.toml --ranks 1 --set parallel.ranks=2").out.find("# --set\n"), std::string::npos);
}

TEST_F(Console, OneRankAndOneStep) {
  EXPECT_NE(kintsugi("train run.toml --set train.folder=one train.steps=1").out.find("done: 1 step, in one\n"),
            std::string::npos);
  EXPECT_NE(kintsugi("compare run.toml --ranks 2 --steps 1").out.find("loss, 2 ranks"), std::string::npos);
}

TEST_F(Console, HintsForOtherNames) {
  for (const auto& [arguments, hint] :
       {std::pair<std::string, std::string>{"check run.toml --set train.dtype=bfloat16", "did you mean \"bf16\"?"},
        {"check run.toml --set train.dtype=float16", "did you mean \"fp16\"?"},
        {"check run.toml --set train.dtype=torch.bfloat16", "did you mean \"bf16\"?"},
        {"generate run --dtype float32", "did you mean \"fp32\"?"},
        {"check run.toml --set data.train=corpus", "name one of them: \"corpus/train\""},
        {"compare run run", "kintsugi report RUN RUN"}}) {
    const Ended ended = kintsugi(arguments);
    EXPECT_EQ(ended.code, 1) << arguments;
    EXPECT_NE(ended.err.find(hint), std::string::npos) << arguments << ended.err;
  }
}

// As requested by the shell.
TEST_F(Console, BashCompletes) {
  ASSERT_TRUE(kintsugi("completion bash").out.starts_with("# bash completion"));
  std::ofstream(*folder / "completion.bash") << kintsugi("completion bash").out;
  const auto completed = [&](const std::string& words) {
    int status = 0;
    return read_terminal(*folder / ".",
                         "bash -c 'source completion.bash; COMP_WORDS=(kintsugi " + words +
                             "); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _kintsugi; echo \"${COMPREPLY[@]}\"'",
                         status);
  };
  EXPECT_EQ(completed("trai"), "train\r\n");
  EXPECT_EQ(completed("train --resu"), "--resume\r\n");
  EXPECT_EQ(completed("train run.toml --set train.warmup"), "train.warmup_steps=\r\n");
  EXPECT_EQ(completed("help evalu"), "evaluate\r\n");
}

// Every verb and option is in each completion script and on the manual page.
TEST_F(Console, CompletionsAndManualAreWhole) {
  const std::string help = kintsugi("train --help").out;
  ASSERT_NE(help.find("--layout"), std::string::npos);
  for (const std::string& verb : {std::string("completion bash"), std::string("completion zsh"),
                                  std::string("completion fish"), std::string("man")}) {
    const Ended ended = kintsugi(verb);
    EXPECT_EQ(ended.code, 0);
    for (const char* word : {"prepare", "evaluate", "layout", "resume"})
      EXPECT_NE(ended.out.find(word), std::string::npos) << verb << word;
  }
}

// Separate verbs, and the options of plan that they replace.
TEST_F(Console, SearchAndScalingAreVerbs) {
  const std::string cluster =
      " --cluster " + (fs::path(__FILE__).parent_path().parent_path() / "clusters/selene.toml").string();
  const auto same = [&](const std::string& verb, const std::string& old, const std::string& note) {
    const Ended now = kintsugi(verb + cluster), before = kintsugi(old + cluster);
    EXPECT_EQ(now.code, 0) << now.err;
    EXPECT_FALSE(now.out.empty());
    EXPECT_EQ(now.out, before.out);
    EXPECT_NE(before.err.find(note), std::string::npos) << before.err;
    EXPECT_EQ(now.err.find("note:"), std::string::npos) << now.err;
  };
  same("scaling run.toml --devices 1,2", "plan run.toml --devices 1,2", "use kintsugi scaling");
  same("search run.toml --devices 2", "plan run.toml --search --devices 2", "use kintsugi search");
  EXPECT_EQ(kintsugi("search run.toml").code, 1);
  EXPECT_EQ(kintsugi("scaling run.toml" + cluster).code, 1);
}

}  // namespace kintsugi::tests::console_test
