// Anything that takes over two seconds shows progress, fits a terminal of 80 columns, and ends within a second of
// Ctrl-C.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <regex>
#include <sstream>
#include <thread>
#include <vector>

#include "kintsugi/base/file.h"
#include "tests/process.h"

namespace kintsugi::tests::waits_test {
namespace {

using Clock = std::chrono::steady_clock;

class Waits : public ::testing::Test {
 protected:
  Waits() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 8000; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 2\nembed = 64\n[data]\ntrain = \"corpus/train\"\nvalidation = \"corpus/validation\"\n"
           "[train]\nfolder = \"run\"\nsteps = 40\nglobal_batch = 4\nsequence = 32\n[parallel]\nthreads = 1\n";
    EXPECT_EQ(run_kintsugi(folder.path(), "prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  // Waits for a line that starts with the time of day and contains `words`, then sends a signal and requires an exit
  // within a second.
  Ended expect_line(const std::string& arguments, const std::string& words, const std::string& seen = "") {
    Process process(folder.path(), arguments);
    const std::regex line("(^|\n)[0-9]{2}:[0-9]{2}:[0-9]{2} " + words + "[^\n]*\n");
    EXPECT_TRUE(process.wait_for([&] { return std::regex_search(process.told(), line); })) << arguments << "\n"
                                                                                           << process.told();
    if (!seen.empty()) {
      const std::regex more(seen);
      EXPECT_TRUE(process.wait_for([&] { return std::regex_search(process.told(), more); })) << arguments << "\n"
                                                                                             << process.told();
    }
    EXPECT_TRUE(process.runs()) << arguments;
    const auto sent = Clock::now();
    process.send(SIGINT);
    const Ended ended = process.wait();
    EXPECT_LT(std::chrono::duration<double>(Clock::now() - sent).count(), 2.0)
        << arguments;  // one, and one for other tests beside it
    return ended;
  }

  // Everything that the command writes to a terminal of 80 columns.
  std::string on_a_terminal(const std::string& arguments) const {
    int terminal = -1;
    struct winsize size = {};
    size.ws_row = 24;
    size.ws_col = 80;
    const pid_t pid = ::forkpty(&terminal, nullptr, nullptr, &size);
    if (pid == 0) {
      const std::string command = "cd '" + folder.path().string() + "' && exec " + kintsugi_command() + " " + arguments;
      ::execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      ::_exit(127);
    }
    std::string text;
    char buffer[4096];
    for (ssize_t n; (n = ::read(terminal, buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(n));
    int status = 0;
    ::waitpid(pid, &status, 0);
    ::close(terminal);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << arguments << "\n" << text;
    return text;
  }

  // The successive lines of the terminal.
  static std::vector<std::string> drawn(const std::string& text) {
    std::vector<std::string> lines(1);
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 3, "\x1b[K") == 0) {
        i += 2;
      } else if (text[i] == '\r' || text[i] == '\n') {
        lines.emplace_back();
      } else {
        lines.back() += text[i];
      }
    }
    std::erase(lines, "");
    return lines;
  }

  TemporaryFolder folder;
};

const std::string kTrained = "train run.toml --set train.steps=1 data.validation= ";
// A step takes seconds.
const std::string kSlowSteps =
    "train run.toml --set parallel.device=reference model.embed=128 train.global_batch=16 train.sequence=128 "
    "data.validation=";

}  // namespace

TEST_F(Waits, Comparing) {
  const Ended ended = expect_line("compare run.toml --ranks 2 --steps 1000000", "comparing  [0-9]+/4000000 parts  ");
  EXPECT_EQ(ended.signal, SIGINT);
}

TEST_F(Waits, CompilingALargeSchedule) {
  expect_line(
      "plan run.toml --set model.layers=512 parallel.pipe=32 parallel.schedule=interleaved parallel.chunks=8 "
      "train.global_batch=512 train.micro_batch=1",
      "compiling: [a-z]+");
}

TEST_F(Waits, LookingForWhatWouldFit) {
  expect_line(
      "plan run.toml --set model.layers=96 parallel.pipe=8 parallel.memory_per_rank=1MiB train.global_batch=64 "
      "train.micro_batch=1",
      "(looking for what would fit|compiling)", "looking for what would fit  [0-9]+/[0-9]+ changes");
}

TEST_F(Waits, Evaluating) {
  EXPECT_EQ(run_kintsugi(folder.path(), kTrained + "model.embed=128 model.layers=4").code, 0);
  const Ended ended = expect_line("evaluate run --data corpus/train --threads 1 --batch 1 --sequence 16",
                                  "evaluating  [0-9]+/[0-9]+ samples  .*left");
  EXPECT_EQ(ended.signal, SIGINT);
}

// A run stopped during a long validation saves, and continues from there.
TEST_F(Waits, ValidatingWithinTraining) {
  const std::string sets =
      "train run.toml --set model.embed=128 model.layers=4 train.steps=50 train.evaluate_every=1 "
      "train.evaluate_batches=0 train.sequence=16 data.validation=corpus/train train.micro_batch=1";
  const Ended ended = expect_line(sets, "validation  [0-9]+/[0-9]+ samples");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("stopped after step 1 (signal)"), std::string::npos) << ended.out;
  EXPECT_TRUE(fs::exists(folder / "run/step_00000001"));
}

TEST_F(Waits, AFirstStepThatTakesLong) {
  Process process(folder.path(),
                  "train run.toml --set parallel.device=reference model.embed=128 model.layers=8 "
                  "train.global_batch=64 train.sequence=256");
  EXPECT_TRUE(process.wait_for([&] { return process.told().find(" starting: first step") != std::string::npos; }))
      << process.told();
}

// There is nothing to save yet.
TEST_F(Waits, AFirstStepEndsAtOnce) {
  const Ended ended = expect_line(kSlowSteps, "starting: first step");
  EXPECT_EQ(ended.signal, SIGINT);
}

TEST_F(Waits, AStepThatTakesLong) {
  Process process(folder.path(), kSlowSteps);
  const std::regex line("\n[0-9:]{8} step [0-9]+/40  loss [^\n]*  step [0-9]+/40 for [0-9.]+s  [^\n]* left\n");
  EXPECT_TRUE(process.wait_for([&] { return std::regex_search(process.told(), line); })) << process.told();
}

TEST_F(Waits, AStepThatIsFinishedAfterASignal) {
  Process process(folder.path(), kSlowSteps);
  EXPECT_TRUE(process.wait_for([&] { return process.told().find(" step 1/40 ") != std::string::npos; }));
  process.send(SIGINT);
  EXPECT_TRUE(process.wait_for([&] { return process.told().find(" stopping after this step") != std::string::npos; }))
      << process.told();
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.out.find("stopped after step 2 (signal)"), std::string::npos) << ended.out;
}

// Nothing is cut at 80 columns, and progress shows the loss, the learning rate and the remaining time.
TEST_F(Waits, ATerminalOf80Columns) {
  // Steps slow enough to leave time between two validations on a fast machine too.
  const std::string text = on_a_terminal(
      "train run.toml --set model.embed=128 model.layers=4 train.steps=20000 train.stop_after_minutes=0.05 "
      "train.evaluate_every=100");
  const std::vector<std::string> lines = drawn(text);
  size_t moving = 0, longest = 0;
  for (const std::string& line : lines) {
    if (!line.starts_with("[")) continue;
    ++moving;
    longest = std::max(longest, line.size());
    EXPECT_LE(line.size(), 79u) << line;
    for (const char* part : {"/20000  loss ", "  lr ", "  grad ", " tok/s  ", " left"})
      EXPECT_NE(line.find(part), std::string::npos) << line;
    EXPECT_TRUE(line.ends_with(" left")) << "cut: " << line;
  }
  EXPECT_GT(moving, 10u);
  EXPECT_GT(longest, 60u);
  EXPECT_EQ(text.find("FLOP/s"), std::string::npos) << "the first to be left out";
}

// In a pipe, every line has a timestamp, and nothing is left out.
TEST_F(Waits, InAPipe) {
  const Ended ended = run_kintsugi(folder.path(), "train run.toml");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err, "");
  std::istringstream lines(ended.progress);
  const std::regex whole(
      "[0-9:]{8} step [0-9]+/40  loss [0-9.]+(  validation [0-9.]+)?  learning rate [0-9.e-]+  gradient [0-9.]+  "
      "[0-9]+ tokens/s  [0-9.]+ [kMGT]?FLOP/s( \\([0-9]+%\\))?  [0-9.]+ [KMG]iB memory  [0-9.]+m?[0-9]*s left");
  int count = 0;
  for (std::string line; std::getline(lines, line); ++count) EXPECT_TRUE(std::regex_match(line, whole)) << line;
  EXPECT_GE(count, 20);
}

}  // namespace kintsugi::tests::waits_test
