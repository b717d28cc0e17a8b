#include "app/progress.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>

namespace kintsugi::app::progress_test {

TEST(Rate, IsSmooth) {
  Rate rate;
  EXPECT_EQ(rate.per_second(), std::nullopt);
  EXPECT_EQ(time_left(rate, 5), "");
  rate.add(100, 0);
  EXPECT_EQ(rate.per_second(), std::nullopt);
  for (int i = 1; i <= 60; ++i) rate.add(100 + i, 2 * i);  // two in each second
  EXPECT_NEAR(*rate.per_second(), 2.0, 1e-9);
  EXPECT_EQ(time_left(rate, 60), "30s left");
  // A step that takes ten times as long changes the remaining time by less than a factor of two, and briefly.
  rate.add(165, 121);
  EXPECT_GT(*rate.per_second(), 1.0);
  EXPECT_LT(*rate.per_second(), 2.0);
  for (int i = 1; i <= 120; ++i) rate.add(165 + i, 121 + 2 * i);
  EXPECT_NEAR(*rate.per_second(), 2.0, 0.02);
}

// The remaining time decreases while the next step is in progress, and increases while it is late.
TEST(Rate, WhatIsLeftWhileNothingIsToldOfIt) {
  Rate rate;
  rate.add(0, 0);
  EXPECT_EQ(rate.seconds_left(1, 5), std::nullopt);
  rate.add(4, 2);  // 2 seconds for each
  EXPECT_NEAR(*rate.seconds_left(4, 3), 6, 1e-9);
  EXPECT_NEAR(*rate.seconds_left(5, 3), 5, 1e-9);
  EXPECT_NEAR(*rate.seconds_left(6, 3), 4, 1e-9);
  EXPECT_NEAR(*rate.seconds_left(6.001, 3), 4, 0.01);
  const double late = *rate.seconds_left(16, 3);
  EXPECT_GT(late, 14);
  EXPECT_GT(*rate.seconds_left(106, 3), late);
  EXPECT_NEAR(*rate.seconds_left(6, 0), 0, 1e-9);
}

// A first part that took no time does not determine the rate during the second.
TEST(Rate, IsNoMoreThanWhatWasDoneInAllTheTime) {
  Rate rate;
  rate.add(0, 0);
  rate.add(2e-6, 1);
  EXPECT_NEAR(*rate.per_second(2e-6), 500'000, 1);
  EXPECT_NEAR(*rate.per_second(10), 0.1, 0.06);
  rate.add(4, 2);
  EXPECT_NEAR(*rate.per_second(4), *rate.per_second(), 1e-9);
}

TEST(FitParts, LeavesOutWhatIsOfLeastUse) {
  const std::vector<LinePart> parts = {{"one", 3}, {"", 9}, {"two", 1}, {"three", 2}};
  EXPECT_EQ(fit_parts(parts, 80), "one  two  three");
  EXPECT_EQ(fit_parts(parts, 15), "one  two  three");
  EXPECT_EQ(fit_parts(parts, 14), "one  three");
  EXPECT_EQ(fit_parts(parts, 9), "one");
  EXPECT_EQ(fit_parts(parts, 1), "one");  // the terminal's line cuts it
  const std::vector<LinePart> brief = {{"learning", 3, "l"}, {"gradient", 2, "g"}, {"FLOP/s", 1}};
  EXPECT_EQ(fit_parts(brief, 26), "learning  gradient  FLOP/s");
  EXPECT_EQ(fit_parts(brief, 25), "learning  gradient");
  EXPECT_EQ(fit_parts(brief, 17), "l  g");
  EXPECT_EQ(fit_parts(brief, 3), "l");
}

namespace {

struct Memory {
  char* data = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&data, &size);
  std::atomic<double> now = 0;

  ~Memory() {
    std::fclose(file);
    std::free(data);
  }
  ProgressOptions options(bool terminal) {
    return {.file = file,
            .quiet_seconds = 1.5,
            .terminal = terminal,
            .width = 80,
            .seconds = [this] { return now.load(); },
            .time = [] { return "12:00:00"; }};
  }
  // What was written after a tick of the thread.
  std::string text() {
    std::this_thread::sleep_for(std::chrono::milliseconds(350));
    std::fflush(file);
    return std::string(data, size);
  }
};

}  // namespace

TEST(Progress, SaysNothingOfShortWork) {
  Memory memory;
  {
    Progress progress("evaluating", memory.options(false));
    memory.now = 1.4;
    progress.count(1, 2, "samples");
    EXPECT_EQ(memory.text(), "");
  }
  EXPECT_EQ(memory.text(), "");
}

TEST(Progress, MovesWithoutBeingTold) {
  Memory memory;
  Progress progress("compiling", memory.options(false));
  progress.tell("memory, stage 3 of 16");
  memory.now = 2;
  EXPECT_EQ(memory.text(), "12:00:00 compiling: memory, stage 3 of 16  2.0s\n");
  memory.now = 8;
  EXPECT_EQ(memory.text(),
            "12:00:00 compiling: memory, stage 3 of 16  2.0s\n12:00:00 compiling: memory, stage 3 of 16  8.0s\n");
}

TEST(Progress, ABarOnATerminalThatIsTakenAway) {
  Memory memory;
  Progress progress("evaluating", memory.options(true));
  progress.count(0, 400, "samples");
  memory.now = 2;
  progress.count(100, 400, "samples");
  const std::string text = memory.text();
  EXPECT_EQ(text.substr(0, text.find('\x1b')),
            "\revaluating  [===>          ]  100/400 samples  50 samples/s  6.0s left");
  progress.finish();
  const std::string all = memory.text();
  EXPECT_TRUE(all.ends_with("\r\x1b[K")) << all;
}

}  // namespace kintsugi::app::progress_test
