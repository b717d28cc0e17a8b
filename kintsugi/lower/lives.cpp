#include "kintsugi/lower/lives.h"

#include <algorithm>
#include <map>
#include <optional>

namespace kintsugi::lower {

using program::BufferId;
using program::Instruction;
using program::kNoBuffer;
using program::Program;
using program::Region;

namespace {

// (output, input) of an instruction that may share memory.
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

}  // namespace

std::vector<Life> lives(const Program& p, const Line& line) {
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

void share_in_place(Program& p, const Line& line, const graph::OpTable& operations,
                    const std::function<bool(BufferId, BufferId)>& may) {
  std::vector<Life> life = lives(p, line);
  std::map<int, int> waits;  // by event
  for (size_t at = 0; at < line.size(); ++at)
    if (line[at]->kind == program::Kind::wait) waits[line[at]->event] = static_cast<int>(at);
  for (size_t at = 0; at < line.size(); ++at) {
    const bool waited = line[at]->kind == program::Kind::collective && waits.contains(line[at]->event);
    const int done = waited ? waits[line[at]->event] : static_cast<int>(at);
    for (const auto& [out, in] : in_place(*line[at], operations)) {
      if (out >= line[at]->outs.size() || in >= line[at]->ins.size()) continue;
      const BufferId to = line[at]->outs[out], from = p.root(line[at]->ins[in]);
      const program::Buffer &y = p.buffer(to), &x = p.buffer(from);
      const bool free =
          y.region == Region::arena && x.region == Region::arena && y.same_as == kNoBuffer && x.input.empty() &&
          x.output.empty() && y.output.empty() && x.type == y.type && to != from &&
          p.buffer(line[at]->ins[in]).bytes() == x.bytes() && life[static_cast<size_t>(from)].end == done &&
          life[static_cast<size_t>(to)].begin == static_cast<int>(at) &&
          std::count_if(line[at]->ins.begin(), line[at]->ins.end(), [&](BufferId b) { return p.root(b) == from; }) == 1;
      if (!free || (may && !may(from, to))) continue;
      // While a collective is under way nobody else reads what it works on.
      const bool read = std::any_of(
          line.begin() + static_cast<std::ptrdiff_t>(at) + 1, line.begin() + done, [&](const Instruction* i) {
            return std::any_of(i->ins.begin(), i->ins.end(), [&](BufferId b) { return p.root(b) == from; });
          });
      if (done > static_cast<int>(at) && read) continue;
      life[static_cast<size_t>(from)].end = life[static_cast<size_t>(to)].end;
      p.buffer(to).same_as = from;
    }
  }
}

std::vector<int64_t> sums(const Program& p, const std::vector<Life>& life, size_t length) {
  std::vector<int64_t> now(length + 2, 0);
  for (size_t b = 0; b < life.size(); ++b) {
    if (life[b].end < 0) continue;
    now[static_cast<size_t>(life[b].begin)] += program::aligned(p.buffers[b].bytes());
    now[static_cast<size_t>(life[b].end) + 1] -= program::aligned(p.buffers[b].bytes());
  }
  for (size_t i = 1; i < now.size(); ++i) now[i] += now[i - 1];
  return now;
}

}  // namespace kintsugi::lower
