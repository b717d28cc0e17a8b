// A terminal as a screen that is redrawn, and its key presses.
#pragma once

#include <termios.h>

#include <string>
#include <vector>

namespace kintsugi::app {

// While this object exists, the terminal shows the alternate screen without cursor and echo; then its state is
// restored. Only changed rows are sent.
class WatchScreen {
 public:
  WatchScreen();
  ~WatchScreen();
  WatchScreen(const WatchScreen&) = delete;
  WatchScreen& operator=(const WatchScreen&) = delete;

  void draw(const std::vector<std::string>& lines, int columns, int rows);
  // Waits this long for a key; returns it or 0.
  char key(double seconds);

 private:
  void send(const std::string& text);

  bool keys_ = false;  // stdin is a terminal
  termios before_ = {};
  std::vector<std::string> shown_;
  int columns_ = 0, rows_ = 0;
};

// The size of stdout's terminal; otherwise of COLUMNS and LINES, or 80 x 24.
struct ScreenSize {
  int columns = 80, rows = 24;
};
ScreenSize screen_size();

}  // namespace kintsugi::app
