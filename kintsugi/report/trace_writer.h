// Writes a Perfetto trace (https://ui.perfetto.dev) in its protobuf format, packet by packet. Traces can be
// concatenated.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kintsugi/report/protobuf.h"

namespace kintsugi::report {

// A slice begins or continues a flow, or ends it.
enum class Flow : uint8_t { none, through, ends };

// Annotations of a slice.
class TraceNotes {
 public:
  TraceNotes& add(std::string_view name, double value);
  TraceNotes& add(std::string_view name, int64_t value);
  TraceNotes& add(std::string_view name, std::string_view value);

 private:
  friend class TraceWriter;
  std::string bytes_;
};

class TraceWriter {
 public:
  // `sequence`: unique among concatenated writers; from 1.
  explicit TraceWriter(uint64_t sequence) : sequence_(sequence) {}

  // Track numbers are unique.
  void group(uint64_t track, std::string_view name);
  void track(uint64_t track, std::string_view name, uint64_t parent);
  void process(uint64_t track, int pid, std::string_view name);
  void thread(uint64_t track, int pid, int tid, std::string_view name, uint64_t parent);

  // Slices of a track nest, and their packets are in time order.
  void begin(uint64_t track, int64_t nanoseconds, std::string_view name, Flow flow = Flow::none, uint64_t flow_id = 0,
             const TraceNotes& notes = {});
  void end(uint64_t track, int64_t nanoseconds);

  std::string take() { return std::move(bytes_); }

 private:
  void event(int64_t nanoseconds, const ProtobufMessage& event);
  void packet(const ProtobufMessage& packet);

  uint64_t sequence_;
  std::string bytes_;
};

}  // namespace kintsugi::report
