#include "kintsugi/report/trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "kintsugi/program/describe.h"
#include "kintsugi/report/protobuf.h"

namespace kintsugi::report {
namespace {

using program::Program;
using simulate::Simulated;
using Span = simulate::Span;

// Field numbers of perfetto/trace/trace.proto, trace_packet.proto, track_event.proto and track_descriptor.proto.
namespace field {
constexpr int kPacket = 1;
constexpr int kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
constexpr int kUuid = 1, kName = 2, kParent = 5;
constexpr int kType = 9, kTrackUuid = 11, kEventName = 23, kFlow = 47, kEndOfFlow = 48;
}  // namespace field
constexpr uint64_t kBegin = 1, kEnd = 2;

class Trace {
 public:
  Trace(const std::vector<Program>& stages, program::Step step, const Simulated& simulated)
      : stages_(stages), step_(step), simulated_(simulated) {}

  std::string write() {
    for (size_t s = 0; s < stages_.size(); ++s)
      descriptor(stage_track(static_cast<int>(s)), fmt::format("stage {}", s));
    std::vector<const Span*> spans;
    for (const Span& span : simulated_.spans) spans.push_back(&span);
    std::ranges::stable_sort(spans, {}, [](const Span* span) { return span->begin; });
    for (const Span* span : spans) add(*span);
    return std::move(bytes_);
  }

 private:
  // Tracks of one kind of a stage, by when their last span ends.
  struct Lane {
    uint64_t track = 0;
    double end = 0;
  };

  static uint64_t stage_track(int stage) { return static_cast<uint64_t>(stage) + 1; }

  void add(const Span& span) {
    if (span.axis < 0) {
      const Program& p = stages_[static_cast<size_t>(span.stage)];
      slice(track(span, span.stage, "kernels"), span, describe(p, p.list(step_).calls[span.call]), 0, 0);
      return;
    }
    const std::string& axis = simulated_.axes[static_cast<size_t>(span.axis)];
    if (span.to < 0) {
      slice(track(span, span.stage, axis), span, axis, 0, 0);
      return;
    }
    ++flows_;
    slice(track(span, span.stage, axis + ", sent"), span, fmt::format("to stage {}", span.to), field::kFlow, flows_);
    slice(track(span, span.to, axis + ", received"), span, fmt::format("from stage {}", span.stage), field::kEndOfFlow,
          flows_);
  }

  // A track on which nothing else is at that time.
  uint64_t track(const Span& span, int stage, const std::string& name) {
    std::vector<Lane>& lanes = lanes_[{stage, name}];
    for (Lane& lane : lanes)
      if (lane.end <= span.begin) {
        lane.end = span.end;
        return lane.track;
      }
    const uint64_t uuid = stages_.size() + 1 + num_tracks_++;
    lanes.push_back({uuid, span.end});
    descriptor(uuid, name, stage_track(stage));
    return uuid;
  }

  void slice(uint64_t track, const Span& span, const std::string& name, int flow_field, uint64_t flow) {
    ProtobufMessage begin;
    begin.integer(field::kType, kBegin).integer(field::kTrackUuid, track).text(field::kEventName, name);
    if (flow_field > 0) begin.fixed64(flow_field, flow);
    packet(span.begin, begin);
    packet(span.end, ProtobufMessage().integer(field::kType, kEnd).integer(field::kTrackUuid, track));
  }

  void packet(double seconds, const ProtobufMessage& event) {
    const auto nanoseconds = static_cast<uint64_t>(std::llround(seconds * 1e9));
    write(ProtobufMessage()
              .integer(field::kTimestamp, nanoseconds)
              .integer(field::kSequence, 1)
              .message(field::kTrackEvent, event));
  }

  void descriptor(uint64_t uuid, const std::string& name, uint64_t parent = 0) {
    ProtobufMessage track;
    track.integer(field::kUuid, uuid).text(field::kName, name);
    if (parent > 0) track.integer(field::kParent, parent);
    write(ProtobufMessage().integer(field::kSequence, 1).message(field::kTrackDescriptor, track));
  }

  void write(const ProtobufMessage& packet) { bytes_ += ProtobufMessage().message(field::kPacket, packet).bytes(); }

  const std::vector<Program>& stages_;
  program::Step step_;
  const Simulated& simulated_;
  std::map<std::pair<int, std::string>, std::vector<Lane>> lanes_;
  uint64_t num_tracks_ = 0, flows_ = 0;
  std::string bytes_;
};

}  // namespace

std::string trace(const std::vector<Program>& stages, program::Step step, const Simulated& simulated) {
  return Trace(stages, step, simulated).write();
}

}  // namespace kintsugi::report
