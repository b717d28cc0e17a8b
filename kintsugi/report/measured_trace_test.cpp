#include "kintsugi/report/measured_trace.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <set>

namespace kintsugi::report::measured_trace_test {
namespace {

using profile::StepTimes;
using program::Collective;
using program::Instruction;
using program::Kind;
using program::Program;

// A reader that shares no code with the writer.
struct Value {
  uint64_t number = 0;
  std::string bytes;
};
using Fields = std::multimap<uint64_t, Value>;

Fields fields_of(std::string_view bytes) {
  size_t at = 0;
  const auto varint = [&] {
    uint64_t value = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      value += uint64_t{byte & 0x7fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  Fields fields;
  while (at < bytes.size()) {
    const uint64_t tag = varint();
    Value value;
    if ((tag & 7) == 0) {
      value.number = varint();
    } else if ((tag & 7) == 1) {
      std::memcpy(&value.number, bytes.substr(at, 8).data(), 8);
      at += 8;
    } else {
      const uint64_t length = varint();
      value.bytes = bytes.substr(at, length);
      at += length;
    }
    fields.emplace(tag >> 3, value);
  }
  return fields;
}

const Value& one(const Fields& fields, uint64_t field) {
  return fields.find(field)->second;
}

struct Slice {
  std::string name;
  uint64_t track = 0;
  int64_t begin = 0, end = 0;
  size_t depth = 0;
  uint64_t flow = 0;
  bool ends_flow = false;
};

struct Read {
  std::map<uint64_t, std::string> tracks;  // "rank 0/compute"
  std::vector<Slice> slices;

  std::string text(std::string_view track) const {
    std::string lines;
    for (const Slice& s : slices)
      if (tracks.at(s.track) == track)
        lines += fmt::format("{}{} {} {}\n", std::string(2 * s.depth, ' '), s.name, s.begin, s.end);
    return lines;
  }
};

// Slices of each track nest, in order of time, or the test fails.
Read read(const std::string& trace) {
  Read read;
  std::map<uint64_t, std::vector<size_t>> open;
  std::map<uint64_t, int64_t> last;
  for (const auto& [field, packet] : fields_of(trace)) {
    EXPECT_EQ(field, 1u);
    const Fields fields = fields_of(packet.bytes);
    EXPECT_GT(one(fields, 10).number, 0u);
    if (fields.contains(60)) {
      const Fields track = fields_of(one(fields, 60).bytes);
      std::string name;
      if (track.contains(3))
        name = one(fields_of(one(track, 3).bytes), 6).bytes;
      else
        name = read.tracks.at(one(track, 5).number) + "/" + one(fields_of(one(track, 4).bytes), 5).bytes;
      EXPECT_TRUE(read.tracks.emplace(one(track, 1).number, name).second);
      continue;
    }
    const auto time = static_cast<int64_t>(one(fields, 8).number);
    const Fields event = fields_of(one(fields, 11).bytes);
    const uint64_t track = one(event, 11).number;
    EXPECT_GE(time, last[track]);
    last[track] = time;
    std::vector<size_t>& stack = open[track];
    if (one(event, 9).number == 2) {
      EXPECT_FALSE(stack.empty());
      read.slices[stack.back()].end = time;
      stack.pop_back();
      continue;
    }
    Slice slice = {.name = one(event, 23).bytes, .track = track, .begin = time, .depth = stack.size()};
    slice.ends_flow = event.contains(48);
    if (slice.ends_flow || event.contains(47)) slice.flow = one(event, slice.ends_flow ? 48 : 47).number;
    stack.push_back(read.slices.size());
    read.slices.push_back(slice);
  }
  for (const auto& [track, stack] : open) EXPECT_TRUE(stack.empty());
  return read;
}

Instruction sum(int event) {
  return {.kind = Kind::collective, .collective = Collective::all_reduce, .group = {0}, .event = event};
}

Instruction message(bool sends, int event) {
  Instruction i = sum(event);
  i.collective = sends ? Collective::send : Collective::receive;
  i.peer = sends ? 1 : 0;
  i.channel = "forward.1 from 0";
  return i;
}

// Two messages from rank 0 to rank 1, which waits for the second first, and a sum over both.
Program program_of(int rank) {
  const bool sends = rank == 0;
  const Instruction a = message(sends, 0), b = message(sends, 1);
  Program p;
  p.mesh = mesh::Mesh({{.name = "pipe", .size = 2}});
  p.stage = rank;
  p.bodies = {
      {.name = "forward",
       .instructions = {
           a, b, {.kernel = "add"}, program::wait_for(b), program::wait_for(a), sum(2), program::wait_for(sum(2))}}};
  p.lists = {{.calls = {{.body = 0, .micro_batch = 3}}}};
  return p;
}

// Rank 1 posts its receives long before rank 0 sends.
StepTimes times_of(int rank) {
  StepTimes times = {.whole = {0, 20'000}, .inputs = {{}}};
  if (rank == 0) times.inputs[0] = {100, 200};
  int64_t at = rank == 0 ? 5'000 : 300;
  for (int i = 0; i < 7; ++i, at += 500) times.instructions.push_back({at, at + 400, at + 400});
  if (rank == 1) times.instructions[3].end = times.instructions[3].progressed = 9'000;
  for (size_t i = 4; i < 7 && rank == 1; ++i)
    times.instructions[i] = {static_cast<int64_t>(9'000 + 500 * i), static_cast<int64_t>(9'300 + 500 * i),
                             static_cast<int64_t>(9'300 + 500 * i)};
  times.instructions[2].progressed += rank == 0 ? 0 : 50;
  return times;
}

std::string trace_of_both(int steps) {
  std::vector<Program> programs = {program_of(0), program_of(1)};
  std::vector<std::vector<profile::Started>> started;
  std::vector<std::vector<int64_t>> told;
  for (int r = 0; r < 2; ++r) {
    started.push_back(profile::started_by(programs[static_cast<size_t>(r)], program::Step::train, r));
    told.push_back(profile::arrivals_of(started.back(), times_of(r), 0));
  }
  std::string joined;
  for (int r = 0; r < 2; ++r) {
    const auto at = static_cast<size_t>(r);
    const StepTimes times = times_of(r);
    const auto waits = profile::waits_of(programs[at], times, started[at], profile::Arrivals(told), r, 0);
    MeasuredTrace trace(programs[at], r);
    for (int step = 0; step < steps; ++step)
      trace.add({.number = step, .times = times, .started = started[at], .waits = waits, .offset = step * 100'000});
    joined += trace.take();
  }
  return joined;
}

}  // namespace

TEST(MeasuredTrace, RanksAreProcessesAndQueuesThreads) {
  const Read trace = read(trace_of_both(1));
  std::set<std::string> tracks;
  for (const auto& [number, name] : trace.tracks) tracks.insert(name);
  EXPECT_EQ(tracks, (std::set<std::string>{"rank 0 (stage 0)", "rank 0 (stage 0)/compute", "rank 0 (stage 0)/pipe",
                                           "rank 0 (stage 0)/pipe: forward.1 from 0", "rank 1 (stage 1)",
                                           "rank 1 (stage 1)/compute", "rank 1 (stage 1)/pipe",
                                           "rank 1 (stage 1)/pipe: forward.1 from 0"}));
}

TEST(MeasuredTrace, SlicesAreCallsInstructionsAndWaits) {
  const Read trace = read(trace_of_both(1));
  EXPECT_EQ(trace.text("rank 0 (stage 0)/compute"),
            "step 0 0 20000\n"
            "  inputs 100 200\n"
            "  forward, micro-batch 3 5000 8400\n"
            "    start send 5000 5400\n"
            "    start send 5500 5900\n"
            "    add 6000 6400\n"
            "    wait for send 6500 6900\n"
            "    wait for send 7000 7400\n"
            "    start all_reduce 7500 7900\n"
            "    wait for all_reduce 8000 8400\n"
            "      waiting for rank 1 8000 8400\n");
  EXPECT_EQ(trace.text("rank 1 (stage 1)/compute"),
            "step 0 0 20000\n"
            "  forward, micro-batch 3 300 12300\n"
            "    start receive 300 700\n"
            "    start receive 800 1200\n"
            "    add 1300 1700\n"
            "    wait for receive 1800 9000\n"
            "      waiting for rank 0 1800 5500\n"
            "    wait for receive 11000 11300\n"
            "    start all_reduce 11500 11800\n"
            "    wait for all_reduce 12000 12300\n");
  // The first message completed with the second, which started after it.
  EXPECT_EQ(trace.text("rank 1 (stage 1)/pipe: forward.1 from 0"), "receive 5001 9000\nreceive 9000 9000\n");
}

TEST(MeasuredTrace, FlowsJoinASendToItsReceiveAndMembers) {
  const Read trace = read(trace_of_both(3));
  std::map<uint64_t, std::vector<Slice>> flows;
  for (const Slice& s : trace.slices)
    if (s.flow != 0) flows[s.flow].push_back(s);
  int messages = 0, sums = 0;
  for (const auto& [flow, slices] : flows) {
    ASSERT_EQ(slices.size(), 2u);
    const bool message = slices[1].ends_flow;
    ++(message ? messages : sums);
    EXPECT_FALSE(slices[0].ends_flow);
    EXPECT_EQ(slices[0].name, message ? "start send" : "start all_reduce");
    EXPECT_EQ(slices[1].name, message ? "receive" : "start all_reduce");
    EXPECT_TRUE(!message || slices[0].begin < slices[1].begin);
    EXPECT_NE(trace.tracks.at(slices[0].track).substr(0, 6), trace.tracks.at(slices[1].track).substr(0, 6));
  }
  EXPECT_EQ(messages, 2 * 3);
  EXPECT_EQ(sums, 3);
}

}  // namespace kintsugi::report::measured_trace_test
