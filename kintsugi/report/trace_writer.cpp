#include "kintsugi/report/trace_writer.h"

#include <bit>

namespace kintsugi::report {
namespace {

// Field numbers of perfetto/trace/trace.proto, trace_packet.proto, track_event.proto, debug_annotation.proto,
// track_descriptor.proto, process_descriptor.proto and thread_descriptor.proto.
namespace field {
constexpr int kPacket = 1;
constexpr int kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
constexpr int kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5;
constexpr int kPid = 1, kProcessName = 6, kTid = 2, kThreadName = 5;
constexpr int kAnnotation = 4, kType = 9, kTrackUuid = 11, kEventName = 23, kFlow = 47, kEndOfFlow = 48;
constexpr int kInteger = 4, kDouble = 5, kText = 6, kAnnotationName = 10;
}  // namespace field
constexpr uint64_t kBegin = 1, kEnd = 2;

std::string annotation(const ProtobufMessage& value) {
  return ProtobufMessage().message(field::kAnnotation, value).bytes();
}

}  // namespace

TraceNotes& TraceNotes::add(std::string_view name, double value) {
  bytes_ += annotation(
      ProtobufMessage().fixed64(field::kDouble, std::bit_cast<uint64_t>(value)).text(field::kAnnotationName, name));
  return *this;
}

TraceNotes& TraceNotes::add(std::string_view name, int64_t value) {
  bytes_ += annotation(
      ProtobufMessage().integer(field::kInteger, static_cast<uint64_t>(value)).text(field::kAnnotationName, name));
  return *this;
}

TraceNotes& TraceNotes::add(std::string_view name, std::string_view value) {
  bytes_ += annotation(ProtobufMessage().text(field::kText, value).text(field::kAnnotationName, name));
  return *this;
}

void TraceWriter::group(uint64_t track, std::string_view name) {
  packet(ProtobufMessage().message(field::kTrackDescriptor,
                                   ProtobufMessage().integer(field::kUuid, track).text(field::kName, name)));
}

void TraceWriter::track(uint64_t track, std::string_view name, uint64_t parent) {
  packet(ProtobufMessage().message(
      field::kTrackDescriptor,
      ProtobufMessage().integer(field::kUuid, track).text(field::kName, name).integer(field::kParent, parent)));
}

void TraceWriter::process(uint64_t track, int pid, std::string_view name) {
  const auto number = static_cast<uint64_t>(pid);
  packet(ProtobufMessage().message(
      field::kTrackDescriptor,
      ProtobufMessage()
          .integer(field::kUuid, track)
          .message(field::kProcess, ProtobufMessage().integer(field::kPid, number).text(field::kProcessName, name))));
}

void TraceWriter::thread(uint64_t track, int pid, int tid, std::string_view name, uint64_t parent) {
  const auto process = static_cast<uint64_t>(pid), number = static_cast<uint64_t>(tid);
  packet(ProtobufMessage().message(field::kTrackDescriptor,
                                   ProtobufMessage()
                                       .integer(field::kUuid, track)
                                       .message(field::kThread, ProtobufMessage()
                                                                    .integer(field::kPid, process)
                                                                    .integer(field::kTid, number)
                                                                    .text(field::kThreadName, name))
                                       .integer(field::kParent, parent)));
}

void TraceWriter::begin(uint64_t track, int64_t nanoseconds, std::string_view name, Flow flow, uint64_t flow_id,
                        const TraceNotes& notes) {
  ProtobufMessage message;
  message.raw(notes.bytes_).integer(field::kType, kBegin).integer(field::kTrackUuid, track);
  message.text(field::kEventName, name);
  if (flow != Flow::none) message.fixed64(flow == Flow::ends ? field::kEndOfFlow : field::kFlow, flow_id);
  event(nanoseconds, message);
}

void TraceWriter::end(uint64_t track, int64_t nanoseconds) {
  event(nanoseconds, ProtobufMessage().integer(field::kType, kEnd).integer(field::kTrackUuid, track));
}

void TraceWriter::event(int64_t nanoseconds, const ProtobufMessage& event) {
  packet(ProtobufMessage()
             .integer(field::kTimestamp, static_cast<uint64_t>(nanoseconds))
             .message(field::kTrackEvent, event));
}

void TraceWriter::packet(const ProtobufMessage& packet) {
  bytes_ += ProtobufMessage()
                .message(field::kPacket, ProtobufMessage().integer(field::kSequence, sequence_).raw(packet.bytes()))
                .bytes();
}

}  // namespace kintsugi::report
