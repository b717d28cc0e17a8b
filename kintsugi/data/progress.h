// The progress of a long read: a bar that is redrawn on a terminal, plain lines elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <string>

namespace kintsugi::data {

// Used by one thread. `to` null: prints nothing.
class Progress {
 public:
  Progress(std::FILE* to, std::string what, uint64_t total_bytes);
  ~Progress();  // ends the bar's line
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  // Prints the progress if the last output is old enough: 0.1 s on a terminal, 10 s elsewhere.
  void show(uint64_t done_bytes);
  // The last line: all is done, in this time.
  void finish(uint64_t done_bytes);

 private:
  double seconds() const;
  void print(uint64_t done_bytes, bool last);

  std::FILE* to_;
  std::string what_;
  uint64_t total_;
  bool terminal_ = false;
  bool open_ = false;  // a bar is on the current line
  std::chrono::steady_clock::time_point begun_;
  double next_ = 0.0;  // seconds
};

}  // namespace kintsugi::data
