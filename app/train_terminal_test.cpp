#include "app/train_terminal.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

namespace kintsugi::app::train_terminal_test {
namespace {

// A file in memory, treated as a terminal of 200 columns or as a pipe.
struct Screen {
  char* data = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&data, &size);

  ~Screen() {
    std::fclose(file);
    std::free(data);
  }
  std::string text() {
    std::fflush(file);
    return std::string(data, size);
  }
  ProgressOptions options(bool terminal) {
    return {.file = file, .terminal = terminal, .width = 200, .time = [] { return "12:00:00"; }};
  }
};

train::Metrics metrics_of(int64_t step, double loss) {
  train::Metrics m;
  m.step = step;
  m.loss = loss;
  m.seconds = 0.5;
  m.tokens_per_second = 64;
  return m;
}

}  // namespace

TEST(TrainTerminal, StepsCountWhatTheModelReads) {
  Screen screen;
  {
    TrainTerminal terminal("images", screen.options(false), screen.options(false));
    terminal.step(metrics_of(1, 2.5), 10);
    terminal.note("a note\x1b[2J");
  }
  const std::string text = screen.text();
  EXPECT_TRUE(text.starts_with("12:00:00 step 1/10  loss 2.5000  ")) << text;
  EXPECT_NE(text.find("  64 images/s  "), std::string::npos) << text;
  EXPECT_NE(text.find("\na note\\x1b[2J\n"), std::string::npos) << text;
}

TEST(TrainTerminal, TextsOfAStepFollowIt) {
  Screen screen;
  {
    TrainTerminal terminal("tokens", screen.options(false), screen.options(false));
    train::Metrics m = metrics_of(3, 1e-5);
    m.validation_loss = 0.5;
    m.samples.push_back({"The ", "end"});
    terminal.step(m, 10);
  }
  const std::string text = screen.text();
  EXPECT_NE(text.find("loss 1.00e-05  validation 0.5000"), std::string::npos) << text;
  EXPECT_TRUE(text.ends_with("\n  > The end\n")) << text;
}

// Anything longer than a moment is shown with its duration, without calls from the run.
TEST(TrainTerminal, AThreadShowsWhatTakesLong) {
  Screen screen;
  TrainTerminal terminal("tokens", screen.options(true), screen.options(true));
  terminal.step(metrics_of(1, 2.5), 10);
  terminal.begins("step 2/10");
  std::this_thread::sleep_for(std::chrono::milliseconds(1900));
  terminal.finish();
  EXPECT_NE(screen.text().find("step 2/10 for 1."), std::string::npos) << screen.text();
}

}  // namespace kintsugi::app::train_terminal_test
