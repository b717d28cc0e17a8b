// The progress of a long read: a bar that is redrawn on a terminal, plain lines with the time of day elsewhere.
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>

namespace kintsugi::data {

// What is counted.
enum class ProgressUnit { bytes, merges };

// "tokenizing [######....] 1.2 of 3.4 MB, 6.7 MB/s, 0.3s left", at most `columns` long: the bar has what the rest
// leaves. `bar`: "tokenizing: 35 %, 1.2 of ..." if false.
struct ProgressState {
  std::string_view what;
  ProgressUnit unit = ProgressUnit::bytes;
  uint64_t done = 0, total = 0;
  double seconds = 0;
  bool last = false;
};
std::string progress_text(const ProgressState& state, bool bar, int columns);

// Used by one thread. `to` null: prints nothing.
class Progress {
 public:
  Progress(std::FILE* to, std::string what, uint64_t total, ProgressUnit unit = ProgressUnit::bytes);
  ~Progress();  // ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Prints the progress if the last output is old enough: 0.1 s on a terminal, 5 s elsewhere.
  void show(uint64_t done);
  // The last line: all is done, in this time.
  void finish(uint64_t done);

 private:
  double seconds() const;
  void print(uint64_t done, bool last);

  std::FILE* to_;
  std::string what_;
  uint64_t total_;
  ProgressUnit unit_;
  bool terminal_ = false;
  bool open_ = false;  // a bar is on the current line
  double begun_ = 0;
  double next_ = 0;  // seconds
};

}  // namespace kintsugi::data
