// Event files, which TensorBoard reads.
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
  double value = 0;  // kept as fp32
};

// A text; TensorBoard shows it as it is, in lines.
struct EventText {
  std::string tag;   // "samples/1"
  std::string text;  // UTF-8
};

// One file for each start of a run. A process that is killed leaves at most one incomplete record at the end, which
// readers leave out.
class EventFile {
 public:
  // Begins the next file of the folder: events.out.tfevents.000001, 000002, ... If there are others, it begins with a
  // mark that what they hold of steps after `last_step` is void. UserError if it cannot be written.
  EventFile(const std::filesystem::path& folder, int64_t last_step);
  ~EventFile();
  EventFile(const EventFile&) = delete;
  EventFile& operator=(const EventFile&) = delete;

  // The values of a step, flushed. `wall_time`: seconds since 1970. UserError if the disk is full.
  void write(int64_t step, double wall_time, std::span<const Scalar> scalars, std::span<const EventText> texts = {});

 private:
  void write_record(std::string_view data);

  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

// Those in a folder, in the order of their starts; none if it cannot be read.
std::vector<std::filesystem::path> event_files(const std::filesystem::path& folder);

double seconds_since_1970();

}  // namespace kintsugi::report
