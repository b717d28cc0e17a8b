#include "app/terminal.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace kintsugi::app::terminal_test {
namespace {

// A file in memory and a clock that does not advance.
struct Screen {
  char* data = nullptr;
  size_t size = 0;
  std::FILE* file = ::open_memstream(&data, &size);
  double now = 0;

  ~Screen() {
    std::fclose(file);
    std::free(data);
  }
  std::string text() {
    std::fflush(file);
    return std::string(data, size);
  }
  ProgressOptions options(bool terminal) {
    return {.file = file,
            .terminal = terminal,
            .width = 10,
            .seconds = [this] { return now; },
            .time = [this] { return "12:00:0" + std::to_string(static_cast<int>(now) % 10); }};
  }
};

}  // namespace

TEST(ProgressLine, OnATerminal) {
  Screen screen;
  {
    ProgressLine line(screen.options(true));
    line.update("step 1");
    line.update("step 2");  // too early
    screen.now = 1;
    line.update("step 3 is long");
    line.print("note");
    line.update("best", true);
    line.update("step 4");
  }
  EXPECT_EQ(screen.text(),
            "\rstep 1\x1b[K"
            "\rstep 3 is\x1b[K"
            "\r\x1b[Knote\n\rstep 3 is\x1b[K"
            "\rbest\x1b[K\n"
            "\rstep 4\x1b[K\n");
}

TEST(ProgressLine, Elsewhere) {
  Screen screen;
  {
    ProgressLine line(screen.options(false));
    for (int i = 1; i <= 8; ++i) {
      line.update("step " + std::to_string(i) + " of a long line", i == 3);
      screen.now += 2;
    }
    line.print("note");
  }
  EXPECT_EQ(screen.text(),
            "12:00:00 step 1 of a long line\n12:00:04 step 3 of a long line\n12:00:00 step 6 of a long line\nnote\n"
            "12:00:06 step 8 of a long line\n");
}

TEST(ProgressLine, NothingToFinish) {
  Screen screen;
  {
    ProgressLine line(screen.options(true));
    line.finish();
    line.update("a\nb");
    line.finish();
    line.finish();
  }
  EXPECT_EQ(screen.text(), "\ra\\nb\x1b[K\n");
}

TEST(ProgressBar, Shares) {
  EXPECT_EQ(progress_bar(0, 7), "[     ]");
  EXPECT_EQ(progress_bar(0.4, 7), "[=>   ]");
  EXPECT_EQ(progress_bar(1, 7), "[=====]");
  EXPECT_EQ(progress_bar(7, 7), "[=====]");
  EXPECT_EQ(progress_bar(0.0 / 0.0, 7), "[     ]");
  EXPECT_EQ(progress_bar(0.5, 0), "[]");
}

TEST(FitColumns, CountsCharacters) {
  EXPECT_EQ(fit_columns("abc", 2), "ab");
  EXPECT_EQ(fit_columns("\u20ac\u20ac\u20ac", 2), "\u20ac\u20ac");
  EXPECT_EQ(fit_columns("\xff\xff", 1), "\xff");
  EXPECT_EQ(fit_columns("abc", 0), "");
}

}  // namespace kintsugi::app::terminal_test
