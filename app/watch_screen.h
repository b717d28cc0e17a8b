// A terminal as a screen that is drawn again and again, and the keys that are pressed there.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

namespace kintsugi::app {

// While this object exists, the terminal shows a screen of its own, without a cursor, and keys are not shown; then it
// is as it was. Only rows that have changed are sent.
class WatchScreen {
 public:
  WatchScreen();
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  void draw(const std::vector<std::string>& lines, int columns, int rows);
  // Waits up to so long for a key: that, or 0.
  char key(double seconds);

 private:
  void send(const std::string& text);

  bool keys_ = false;  // stdin is a terminal
  termios before_ = {};
  std::vector<std::string> shown_;
  int columns_ = 0, rows_ = 0;
};

// Of the terminal of stdout; where it is none, of COLUMNS and LINES, or 80 x 24.
struct ScreenSize {
  int columns = 80, rows = 24;
};
ScreenSize screen_size();

}  // namespace kintsugi::app
