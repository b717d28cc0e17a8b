// An event file is a list of records, all numbers little-endian:
//
//   record := length:u64 masked_crc(length):u32 data:byte[length] masked_crc(data):u32
//   data   := Event, a message of tensorflow/core/util/event.proto
//
// masked_crc(bytes) is crc32c(bytes), rotated right by 15 bits, plus 0xa282ead8. The first event contains the version.
#include "kintsugi/report/event_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstring>

#include "kintsugi/base/crc32c.h"
#include "kintsugi/base/error.h"
#include "kintsugi/report/protobuf.h"

namespace kintsugi::report {
namespace {

namespace fs = std::filesystem;

// Field numbers of event.proto and summary.proto.
namespace event_field {
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;
constexpr int kStatus = 1;                                             // of SessionLog
constexpr int kValue = 1;                                              // of Summary
constexpr int kTag = 1, kSimpleValue = 2, kTensor = 8, kMetadata = 9;  // of Summary.Value
constexpr int kPluginData = 1, kDataClass = 4;                         // of SummaryMetadata
constexpr int kPluginName = 1;                                         // of SummaryMetadata.PluginData
constexpr int kDtype = 1, kShape = 2, kStringValues = 8;  // of TensorProto; a shape without dims is a scalar
}  // namespace event_field
constexpr uint64_t kTensorClass = 2;  // of DataClass
constexpr uint64_t kString = 7;       // of DataType
constexpr uint64_t kStart = 1;        // of SessionLog.SessionStatus: readers drop steps from this event's on
constexpr std::string_view kVersion = "brain.Event:2";
constexpr std::string_view kPrefix = "events.out.tfevents.";

uint32_t masked_crc(std::string_view bytes) {
  return std::rotr(base::crc32c(bytes), 15) + 0xa282ead8u;
}

std::string little_endian(uint64_t value, int bytes) {
  std::string text;
  for (int byte = 0; byte < bytes; ++byte) text += static_cast<char>(value >> (8 * byte));
  return text;
}

ProtobufMessage event(double wall_time, int64_t step) {
  ProtobufMessage message;
  message.fixed64(event_field::kWallTime, std::bit_cast<uint64_t>(wall_time));
  if (step != 0) message.integer(event_field::kStep, static_cast<uint64_t>(step));
  return message;
}

// TensorBoard renders Markdown, in which lines indented by four spaces are verbatim.
std::string as_lines(std::string_view text) {
  std::string lines = "    ";
  for (const char c : text) {
    lines += c;
    if (c == '\n') lines += "    ";
  }
  return lines;
}

// A value of the text plugin.
ProtobufMessage value_of(const EventText& text) {
  const ProtobufMessage plugin = ProtobufMessage().text(event_field::kPluginName, "text");
  const ProtobufMessage metadata =
      ProtobufMessage().message(event_field::kPluginData, plugin).integer(event_field::kDataClass, kTensorClass);
  const ProtobufMessage tensor = ProtobufMessage()
                                     .integer(event_field::kDtype, kString)
                                     .message(event_field::kShape, ProtobufMessage())
                                     .text(event_field::kStringValues, as_lines(text.text));
  return ProtobufMessage()
      .text(event_field::kTag, text.tag)
      .message(event_field::kTensor, tensor)
      .message(event_field::kMetadata, metadata);
}

// The number of one of our event files; 0 for others.
int64_t number_of(const fs::path& path) {
  const std::string name = path.filename().string();
  if (!name.starts_with(kPrefix)) return 0;
  int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data() + kPrefix.size(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() ? number : 0;
}

}  // namespace

EventFile::EventFile(const fs::path& folder, int64_t last_step) {
  const std::vector<fs::path> others = event_files(folder);
  const int64_t number = others.empty() ? 1 : number_of(others.back()) + 1;
  path_ = folder / fmt::format("{}{:06}", kPrefix, number);
  file_ = std::fopen(path_.c_str(), "wx");
  if (!file_) throw base::UserError("events", "cannot write \"{}\": {}", path_.string(), std::strerror(errno));
  const double now = seconds_since_1970();
  write_record(event(now, 0).text(event_field::kFileVersion, kVersion).bytes());
  if (others.empty()) return;
  const ProtobufMessage start = ProtobufMessage().integer(event_field::kStatus, kStart);
  write_record(event(now, last_step + 1).message(event_field::kSessionLog, start).bytes());
}

EventFile::~EventFile() {
  if (file_) std::fclose(file_);
}

void EventFile::write(int64_t step, double wall_time, std::span<const Scalar> scalars,
                      std::span<const EventText> texts) {
  ProtobufMessage summary;
  for (const Scalar& scalar : scalars)
    summary.message(event_field::kValue,
                    ProtobufMessage()
                        .text(event_field::kTag, scalar.tag)
                        .fixed32(event_field::kSimpleValue, std::bit_cast<uint32_t>(static_cast<float>(scalar.value))));
  for (const EventText& text : texts) summary.message(event_field::kValue, value_of(text));
  write_record(event(wall_time, step).message(event_field::kSummary, summary).bytes());
}

void EventFile::write_record(std::string_view data) {
  const std::string length = little_endian(data.size(), 8);
  std::string record = length + little_endian(masked_crc(length), 4);
  record += data;
  record += little_endian(masked_crc(data), 4);
  if (std::fwrite(record.data(), 1, record.size(), file_) != record.size() || std::fflush(file_) != 0)
    throw base::UserError("events", "cannot write \"{}\": {}", path_.string(), std::strerror(errno));
}

std::vector<fs::path> event_files(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
    if (number_of(i->path()) > 0) files.push_back(i->path());
  std::ranges::sort(files, {}, number_of);
  return files;
}

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace kintsugi::report
