#include "kintsugi/lower/order/copies.h"

#include <algorithm>

#include "kintsugi/tensor/dims.h"

namespace kintsugi::lower {

using program::Buffer;
using program::BufferId;
using program::Copy;
using program::Instruction;
using program::Kind;
using program::Program;

int first_free_event(const Program& p) {
  int events = 0;
  for (const program::Body& body : p.bodies)
    for (const Instruction& i : body.instructions) events = std::max(events, i.event + 1);
  return events;
}

BufferId add_like(Program& p, BufferId like, program::Region region, const std::string& suffix, int64_t copies) {
  Buffer b = p.buffer(like);
  b.name += suffix;
  b.region = region;
  b.copies = copies;
  p.buffers.push_back(std::move(b));
  return static_cast<BufferId>(p.buffers.size()) - 1;
}

BufferId add_part(Program& p, BufferId of, int64_t first, int64_t elements) {
  const Buffer& whole = p.buffer(of);
  Buffer b = {.name = whole.name,
              .type = {tensor::Shape{{std::string(tensor::kFlat), elements}}, whole.type.dtype},
              .region = whole.region,
              .same_as = of,
              .shift = first * tensor::size_of(whole.type.dtype)};
  p.buffers.push_back(std::move(b));
  return static_cast<BufferId>(p.buffers.size()) - 1;
}

int Copies::start(size_t at, Copy copy, BufferId from, BufferId to, const Instruction& like) {
  const bool fetches = copy == Copy::fetch;
  started_.push_back({.kind = Kind::copy,
                      .copy = copy,
                      .ins = {from},
                      .outs = {to},
                      .layer = like.layer,
                      .phase = like.phase,
                      .cost = {.wire_bytes = static_cast<double>(p_.buffer(from).bytes())},
                      .reason = fetches ? "is used next" : "is not used for a while",
                      .event = events_++});
  entries_.push_back({at, fetches ? 2 : 0, started_.back()});
  return static_cast<int>(started_.size()) - 1;
}

int Copies::fetch(size_t at, BufferId from, BufferId to, const Instruction& like) {
  return start(at, Copy::fetch, from, to, like);
}

int Copies::store(size_t at, BufferId from, BufferId to, const Instruction& like) {
  return start(at, Copy::store, from, to, like);
}

void Copies::wait(size_t at, int copy) {
  const Instruction& i = started_[static_cast<size_t>(copy)];
  entries_.push_back({at, i.copy == Copy::fetch ? 3 : 1, program::wait_for(i)});
}

void Copies::put_into(program::Body& body) {
  std::stable_sort(entries_.begin(), entries_.end(),
                   [](const Entry& a, const Entry& b) { return std::pair(a.at, a.order) < std::pair(b.at, b.order); });
  std::vector<Instruction> list;
  auto next = entries_.begin();
  for (size_t at = 0; at <= body.instructions.size(); ++at) {
    for (; next != entries_.end() && next->at == at; ++next) list.push_back(std::move(next->instruction));
    if (at < body.instructions.size()) list.push_back(std::move(body.instructions[at]));
  }
  body.instructions = std::move(list);
  entries_.clear();
  started_.clear();
}

}  // namespace kintsugi::lower
