// Progress of a long read: a bar on a terminal, timestamped lines elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace kintsugi::data {

// What to count.
enum class ProgressUnit { bytes, merges };

// "tokenizing [######....] 1.2 of 3.4 MB, 6.7 MB/s, 0.3s left", at most `columns` wide: the bar fills the remaining
// width. Without `bar`: "tokenizing: 35 %, 1.2 of ...".
struct ProgressState {
  std::string_view what;
  ProgressUnit unit = ProgressUnit::bytes;
  uint64_t done = 0, total = 0;
  double seconds = 0;
  bool last = false;
};
std::string progress_text(const ProgressState& state, bool bar, int columns);

// Single-threaded. `to` null: prints nothing.
class Progress {
 public:
  Progress(std::FILE* to, std::string what, uint64_t total, ProgressUnit unit = ProgressUnit::bytes);
  ~Progress();  // ends the line of the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Prints progress at most every 0.1 s on a terminal and every 5 s elsewhere.
  void show(uint64_t done);
  // Prints the last line, with the total time.
  void finish(uint64_t done);

 private:
  double seconds() const;
  void print(uint64_t done, bool last);

  std::FILE* to_;
  std::string what_;
  uint64_t total_;
  ProgressUnit unit_;
  bool terminal_ = false;
  bool open_ = false;  // the current line contains a bar
  double begun_ = 0;
  double next_ = 0;  // seconds
};

}  // namespace kintsugi::data
