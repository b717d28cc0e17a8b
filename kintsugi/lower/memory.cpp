#include "kintsugi/lower/memory.h"

#include <algorithm>
#include <array>
#include <map>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower {

using program::aligned;
using program::Body;
using program::BufferId;
using program::CallList;
using program::Instruction;
using program::kNoBuffer;
using program::Program;
using program::Region;

namespace {

void place_states(Program& p) {
  constexpr std::array<std::string_view, 6> order = {"weight", "gradient", "level", "optimizer", "statistic", "cache"};
  for (std::string_view kind : order)
    for (const program::StateInfo& s : p.states) {
      if (s.kind != kind || p.buffer(s.buffer).offset >= 0) continue;  // of a bucket placed already
      p.buffer(s.buffer).offset = p.state_bytes;
      p.state_bytes += aligned(p.buffer(s.buffer).bytes());
    }
}

struct Life {
  int begin = 1 << 30;
  int end = -1;

  bool overlaps(const Life& other) const { return begin <= other.end && other.begin <= end; }
};

// The timeline of a list: the last micro-batch, which has all that others have, and what follows it; other
// micro-batches use the same buffers again.
std::vector<Instruction*> timeline(Program& p, const CallList& list) {
  int64_t last = 0;
  for (const program::Call& call : list.calls) last = std::max(last, call.micro_batch);
  std::vector<Instruction*> line;
  for (const program::Call& call : list.calls)
    if (call.micro_batch < 0 || call.micro_batch == last)
      for (Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions) line.push_back(&i);
  return line;
}

std::vector<Life> lives(const Program& p, const std::vector<Instruction*>& line) {
  std::vector<Life> life(p.buffers.size());
  const auto touch = [&](BufferId b, int at) {
    if (b == kNoBuffer) return;
    const BufferId r = p.root(b);
    if (p.buffer(r).region != Region::arena) return;
    Life& l = life[static_cast<size_t>(r)];
    l.begin = p.buffer(r).input.empty() ? std::min(l.begin, at) : 0;
    l.end = p.buffer(r).output.empty() ? std::max(l.end, at) : static_cast<int>(line.size());
  };
  for (size_t at = 0; at < line.size(); ++at) {
    for (BufferId b : line[at]->ins) touch(b, static_cast<int>(at));
    for (BufferId b : line[at]->outs) touch(b, static_cast<int>(at));
    touch(line[at]->workspace, static_cast<int>(at));
  }
  return life;
}

// (output, input) that may share memory.
std::vector<std::pair<int, int>> in_place(const Instruction& i) {
  if (i.kind == program::Kind::compute) return ops::operations().find(i.kernel).in_place;
  if (i.kind == program::Kind::collective && i.kernel == "all_reduce") return {{0, 0}};
  return {};
}

// Outputs take the memory of inputs that die. All bodies of a list agree, since variants have the same buffers.
void share_in_place(Program& p, const std::vector<Instruction*>& line) {
  std::vector<Life> life = lives(p, line);
  std::map<int, int> waits;  // by event
  for (size_t at = 0; at < line.size(); ++at)
    if (line[at]->kind == program::Kind::wait) waits[line[at]->event] = static_cast<int>(at);
  for (size_t at = 0; at < line.size(); ++at) {
    const bool waited = line[at]->kind == program::Kind::collective && waits.contains(line[at]->event);
    const int done = waited ? waits[line[at]->event] : static_cast<int>(at);
    for (const auto& [out, in] : in_place(*line[at])) {
      if (static_cast<size_t>(out) >= line[at]->outs.size() || static_cast<size_t>(in) >= line[at]->ins.size())
        continue;
      const BufferId to = line[at]->outs[static_cast<size_t>(out)],
                     from = p.root(line[at]->ins[static_cast<size_t>(in)]);
      const program::Buffer &y = p.buffer(to), &x = p.buffer(from);
      const bool free =
          y.region == Region::arena && x.region == Region::arena && y.same_as == kNoBuffer && x.input.empty() &&
          x.output.empty() && y.output.empty() && x.type == y.type && to != from &&
          p.buffer(line[at]->ins[static_cast<size_t>(in)]).bytes() == x.bytes() &&
          life[static_cast<size_t>(from)].end == done && life[static_cast<size_t>(to)].begin == static_cast<int>(at) &&
          std::count_if(line[at]->ins.begin(), line[at]->ins.end(), [&](BufferId b) { return p.root(b) == from; }) == 1;
      // While a collective is under way nobody else reads what it works on.
      const bool read = std::any_of(
          line.begin() + static_cast<std::ptrdiff_t>(at) + 1, line.begin() + done, [&](const Instruction* i) {
            return std::any_of(i->ins.begin(), i->ins.end(), [&](BufferId b) { return p.root(b) == from; });
          });
      if (!free || (done > static_cast<int>(at) && read)) continue;
      life[static_cast<size_t>(from)].end = life[static_cast<size_t>(to)].end;
      p.buffer(to).same_as = from;
    }
  }
}

// The largest sum of what lives at one time: no packing is smaller.
int64_t lower_bound(const Program& p, const std::vector<Life>& life, int length) {
  std::vector<int64_t> change(static_cast<size_t>(length) + 2, 0);
  for (size_t b = 0; b < life.size(); ++b) {
    if (life[b].end < 0) continue;
    change[static_cast<size_t>(life[b].begin)] += aligned(p.buffers[b].bytes());
    change[static_cast<size_t>(life[b].end) + 1] -= aligned(p.buffers[b].bytes());
  }
  int64_t now = 0, most = 0;
  for (int64_t c : change) most = std::max(most, now += c);
  return most;
}

int64_t pack(Program& p, const std::vector<Life>& life) {
  std::vector<size_t> order;
  for (size_t b = 0; b < life.size(); ++b)
    if (life[b].end >= 0) order.push_back(b);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return p.buffers[a].bytes() > p.buffers[b].bytes(); });
  std::vector<size_t> placed;  // by offset
  int64_t top = 0;
  for (size_t b : order) {
    const int64_t bytes = aligned(p.buffers[b].bytes());
    int64_t offset = 0;
    for (size_t other : placed) {
      if (!life[b].overlaps(life[other])) continue;
      if (p.buffers[other].offset >= offset + bytes) break;
      offset = std::max(offset, p.buffers[other].offset + aligned(p.buffers[other].bytes()));
    }
    p.buffers[b].offset = offset;
    placed.insert(std::upper_bound(placed.begin(), placed.end(), offset,
                                   [&](int64_t o, size_t other) { return o < p.buffers[other].offset; }),
                  b);
    top = std::max(top, offset + bytes);
  }
  return top;
}

}  // namespace

void plan_memory(Program& p) {
  place_states(p);
  for (CallList& list : p.lists) {
    std::vector<Instruction*> line = timeline(p, list);
    share_in_place(p, line);
    const std::vector<Life> life = lives(p, line);
    list.lower_bound_bytes = lower_bound(p, life, static_cast<int>(line.size()));
    list.arena_bytes = pack(p, life);
    p.arena_bytes = std::max(p.arena_bytes, list.arena_bytes);
  }
  for (const program::Buffer& b : p.buffers)
    base::require(b.same_as != kNoBuffer || b.offset >= 0 || b.region == Region::arena, "memory", "\"{}\" has no place",
                  b.name);
}

}  // namespace kintsugi::lower
