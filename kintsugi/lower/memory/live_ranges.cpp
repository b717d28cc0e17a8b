#include "kintsugi/lower/memory/live_ranges.h"

#include <algorithm>
#include <map>
#include <optional>

#include "kintsugi/program/walk.h"

namespace kintsugi::lower {

using program::BufferId;
using program::Instruction;
using program::kNoBuffer;
using program::Program;
using program::Region;

namespace {

// (output, input) pairs of an instruction that may share memory.
std::vector<std::pair<size_t, size_t>> in_place(const Instruction& i, const graph::OpTable& operations) {
  if (i.kind == program::Kind::compute) {
    const graph::OpRow& row = operations.find(i.kernel);
    std::vector<std::pair<size_t, size_t>> places;
    for (const auto& [out, in] : row.in_place) {
      const std::optional<size_t> to = row.outs.place(out, i.absent.outs), from = row.ins.place(in, i.absent.ins);
      if (to && from) places.push_back({*to, *from});
    }
    return places;
  }
  if (starts(i, program::Collective::all_reduce)) return {{0, 0}};
  return {};
}

// [instruction]: the instruction that completes its work, the wait for it or itself.
std::vector<size_t> done_at(const Instructions& list) {
  std::map<int, size_t> waits;  // [event]
  for (size_t at = 0; at < list.size(); ++at)
    if (list[at]->kind == program::Kind::wait) waits[list[at]->event] = at;
  std::vector<size_t> done;
  for (size_t at = 0; at < list.size(); ++at) {
    const bool waited = list[at]->kind == program::Kind::collective && waits.contains(list[at]->event);
    done.push_back(waited ? waits[list[at]->event] : at);
  }
  return done;
}

// Whether output `to` of the instruction may reuse the memory of its input `operand`, considering types, the run and
// other operands.
bool fits_in_place(const Program& p, const Instruction& i, BufferId operand, BufferId to) {
  const BufferId from = p.root(operand);
  const program::Buffer &x = p.buffer(from), &y = p.buffer(to);
  const auto is_from = [&](BufferId b) { return p.root(b) == from; };
  return y.region == Region::arena && x.region == Region::arena && y.same_as == kNoBuffer && to != from &&
         x.input.empty() && x.output.empty() && y.output.empty() && x.type == y.type &&
         p.buffer(operand).bytes() == x.bytes() && std::count_if(i.ins.begin(), i.ins.end(), is_from) == 1;
}

// Whether an instruction between these two reads it: while a collective is in flight, no other instruction may read its
// buffers.
bool is_read_between(const Program& p, const Instructions& list, BufferId root, size_t begin, size_t end) {
  for (size_t at = begin + 1; at < end; ++at)
    for (BufferId b : list[at]->ins)
      if (p.root(b) == root) return true;
  return false;
}

// For a write of a single position to a cache, the first later instruction that reads the cache: a kernel may fuse both
// (kernels::Capability::follow). Nothing for other instructions.
std::optional<size_t> reads_cache(const Program& p, const Instructions& list, size_t at) {
  const Instruction& write = *list[at];
  if (write.kernel != "cache_write" || p.buffer(write.ins[1]).type.shape.size("seq") != 1) return std::nullopt;
  const BufferId cache = p.root(write.outs[0]);
  for (size_t later = at + 1; later < list.size(); ++later)
    for (const BufferId b : list[later]->ins)
      if (p.root(b) == cache) return later;
  return std::nullopt;
}

}  // namespace

Instructions instructions_of(const Program& p, const std::vector<int>& bodies) {
  Instructions list;
  for (int body : bodies)
    for (const Instruction& i : p.bodies[static_cast<size_t>(body)].instructions) list.push_back(&i);
  return list;
}

std::vector<int> bodies_of_last_micro_batch(const program::CallList& list) {
  const int64_t last = program::last_micro_batch(list);
  std::vector<int> bodies;
  for (const program::Call& call : list.calls)
    if (call.micro_batch < 0 || call.micro_batch == last) bodies.push_back(call.body);
  return bodies;
}

std::vector<LiveRange> live_ranges(const Program& p, const Instructions& list) {
  std::vector<LiveRange> live(p.buffers.size());
  const auto touch = [&](BufferId b, int at) {
    if (b == kNoBuffer) return;
    const BufferId r = p.root(b);
    const program::Buffer& buffer = p.buffer(r);
    if (buffer.region != Region::arena) return;
    LiveRange& range = live[static_cast<size_t>(r)];
    range.begin = buffer.input.empty() ? std::min(range.begin, at) : 0;
    range.end = buffer.output.empty() ? std::max(range.end, at) : static_cast<int>(list.size());
  };
  for (size_t at = 0; at < list.size(); ++at) {
    for (BufferId b : list[at]->ins) touch(b, static_cast<int>(at));
    for (BufferId b : list[at]->outs) touch(b, static_cast<int>(at));
    touch(list[at]->workspace, static_cast<int>(at));
    if (const auto reader = reads_cache(p, list, at)) touch(list[at]->ins[1], static_cast<int>(*reader));
  }
  return live;
}

std::vector<int64_t> live_bytes(const Program& p, const std::vector<LiveRange>& live, size_t length) {
  std::vector<int64_t> now(length + 2, 0);
  for (size_t b = 0; b < live.size(); ++b) {
    if (live[b].empty()) continue;
    now[static_cast<size_t>(live[b].begin)] += p.aligned(p.buffers[b].bytes());
    now[static_cast<size_t>(live[b].end) + 1] -= p.aligned(p.buffers[b].bytes());
  }
  for (size_t i = 1; i < now.size(); ++i) now[i] += now[i - 1];
  return now;
}

void share_in_place(Program& p, const Instructions& list, const graph::OpTable& operations, const Sharing& sharing) {
  std::vector<LiveRange> live = live_ranges(p, list);
  const std::vector<size_t> done = done_at(list);
  for (size_t at = 0; at < list.size(); ++at)
    for (const auto& [out, in] : in_place(*list[at], operations)) {
      if (out >= list[at]->outs.size() || in >= list[at]->ins.size()) continue;
      const BufferId to = list[at]->outs[out], operand = list[at]->ins[in], from = p.root(operand);
      LiveRange &of_from = live[static_cast<size_t>(from)], &of_to = live[static_cast<size_t>(to)];
      if (of_from.end != static_cast<int>(done[at]) || of_to.begin != static_cast<int>(at) ||
          !fits_in_place(p, *list[at], operand, to) || (sharing.may && !sharing.may(from, to)) ||
          is_read_between(p, list, from, at, done[at]))
        continue;
      of_from.end = of_to.end;
      p.buffer(to).same_as = from;
      if (sharing.shared) sharing.shared(from, to);
    }
}

}  // namespace kintsugi::lower
