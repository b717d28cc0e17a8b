// Event files in TensorBoard's format.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::report {

struct Scalar {
  std::string tag;   // "loss/train"
  double value = 0;  // stored as fp32
};

// A text, shown verbatim by TensorBoard.
struct EventText {
  std::string tag;   // "samples/1"
  std::string text;  // UTF-8
};

// One file per start of a run. A killed process leaves at most one incomplete record at the end, which readers ignore.
class EventFile {
 public:
  // Creates the folder's next file: events.out.tfevents.000001, 000002, ... If others exist, begins with a marker that
  // invalidates their steps after `last_step`. Throws UserError if it cannot be written.
  EventFile(const std::filesystem::path& folder, int64_t last_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // Writes and flushes the values of a step. `wall_time`: seconds since 1970. Throws UserError if the disk is full.
  void write(int64_t step, double wall_time, std::span<const Scalar> scalars, std::span<const EventText> texts = {});

 private:
  void write_record(std::string_view data);

  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// The event files of a folder in order of creation; none if it cannot be read.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder);

double seconds_since_1970();

}  // namespace kintsugi::report
