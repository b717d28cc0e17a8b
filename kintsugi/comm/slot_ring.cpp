#include "kintsugi/comm/slot_ring.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/reduce.h"

namespace kintsugi::comm {
namespace {

constexpr size_t kChunk = 64 << 10;
constexpr size_t kStream = 32 << 20;  // about what the last cache holds

bool is_message(Kind kind) {
  return kind == Kind::send || kind == Kind::receive;
}

// A message has a send at member 0 and a receive at member 1.
bool agree(const Call& a, const Call& b) {
  return is_message(a.kind) ? a.bytes == b.bytes : a.agrees_with(b);
}

}  // namespace

SlotRing::SlotRing(int members, uint64_t slots)
    : members_(members),
      num_slots_(slots),
      slots_(new Slot[slots]),
      posts_(new Post[slots * members]),
      ins_(slots * members),
      outs_(slots * members) {}

bool SlotRing::is_free(uint64_t operation) const {
  return slot(operation).round.load(std::memory_order_seq_cst) == operation / num_slots_;
}

bool SlotRing::has_posted(uint64_t operation, int member) const {
  return is_free(operation) && posts_[first(operation) + member].here.load(std::memory_order_acquire);
}

bool SlotRing::post(uint64_t operation, int member, const Call& call) {
  const size_t at = first(operation) + member;
  posts_[at].call = call;
  ins_[at] = call.in;
  outs_[at] = call.out;
  posts_[at].here.store(true, std::memory_order_release);
  if (slot(operation).posted.fetch_add(1, std::memory_order_acq_rel) + 1 < members_) return false;
  make_ready(operation);
  return true;
}

void SlotRing::make_ready(uint64_t operation) {
  Slot& s = slot(operation);
  const Call& call = posts_[first(operation)].call;
  for (int m = 1; m < members_; ++m) {
    if (!agree(call, posts_[first(operation) + m].call)) {
      s.state.store(State::mismatched, std::memory_order_release);
      return;
    }
  }
  uint64_t units = 1;
  if (call.kind == Kind::all_to_all) {
    units = static_cast<uint64_t>(members_) * members_;
  } else if (call.has_parts()) {
    units = members_;
  }
  s.unit = call.has_parts() ? call.bytes / members_ : call.bytes;
  s.stream = call.bytes * members_ >= kStream;
  s.chunks_of_unit = (s.unit + kChunk - 1) / kChunk;
  s.chunks = units * s.chunks_of_unit;
  s.state.store(s.chunks == 0 ? State::finished : State::ready, std::memory_order_release);
}

bool SlotRing::has_work(uint64_t operation) const {
  const Slot& s = slot(operation);
  return state(operation) == State::ready && s.next.load(std::memory_order_relaxed) < s.chunks;
}

bool SlotRing::work(uint64_t operation) {
  Slot& s = slot(operation);
  const uint64_t chunk = s.next.fetch_add(1, std::memory_order_relaxed);
  if (chunk >= s.chunks) return false;
  move(operation, chunk);
  if (s.done.fetch_add(1, std::memory_order_acq_rel) + 1 < s.chunks) return false;
  s.state.store(State::finished, std::memory_order_release);
  return true;
}

bool SlotRing::leave(uint64_t operation) {
  Slot& s = slot(operation);
  if (s.left.fetch_add(1, std::memory_order_acq_rel) + 1 < members_) return false;
  for (int m = 0; m < members_; ++m) posts_[first(operation) + m].here.store(false, std::memory_order_relaxed);
  s.posted.store(0, std::memory_order_relaxed);
  s.left.store(0, std::memory_order_relaxed);
  s.next.store(0, std::memory_order_relaxed);
  s.done.store(0, std::memory_order_relaxed);
  s.state.store(State::open, std::memory_order_relaxed);
  s.round.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

std::string SlotRing::mismatch(uint64_t operation, const std::vector<int>& world_ranks) const {
  const Call& call = posts_[first(operation)].call;
  for (int m = 1; m < members_; ++m) {
    const Call& other = posts_[first(operation) + m].call;
    if (agree(call, other)) continue;
    const auto text = [&](const Call& c) { return is_message(c.kind) ? c.text() : c.text_in_full(); };
    return fmt::format("rank {} calls {}, rank {} {}", world_ranks[0], text(call), world_ranks[m], text(other));
  }
  throw base::InternalError("comm", "all calls agree");
}

// Chunks are the pieces of unit 0, then those of unit 1, ...; a unit is the part of a rank, or all there is.
void SlotRing::move(uint64_t operation, uint64_t chunk) const {
  const Slot& s = slot(operation);
  const Call& call = posts_[first(operation)].call;
  const uint64_t unit = chunk / s.chunks_of_unit;
  const size_t at = chunk % s.chunks_of_unit * kChunk;
  const size_t bytes = std::min(kChunk, s.unit - at);
  const std::span<const std::byte* const> ins(ins_.data() + first(operation), members_);
  const std::span<std::byte* const> outs(outs_.data() + first(operation), members_);
  const size_t in_whole = unit * s.unit + at;
  switch (call.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      return reduce({ins, at, outs, at, bytes, s.stream}, call.dtype, call.reduction);
    case Kind::reduce_scatter:
      return reduce({ins, in_whole, outs.subspan(unit, 1), at, bytes, s.stream}, call.dtype, call.reduction);
    case Kind::broadcast:
      for (std::byte* out : outs) copy(ins[call.root] + at, out + at, bytes, s.stream);
      return;
    case Kind::all_gather:
      for (std::byte* out : outs) copy(ins[unit] + at, out + in_whole, bytes, s.stream);
      return;
    case Kind::scatter:
      return copy(ins[call.root] + in_whole, outs[unit] + at, bytes, s.stream);
    case Kind::gather:
      return copy(ins[unit] + at, outs[call.root] + in_whole, bytes, s.stream);
    case Kind::all_to_all: {
      const uint64_t from = unit / members_, to = unit % members_;
      return copy(ins[from] + to * s.unit + at, outs[to] + from * s.unit + at, bytes, s.stream);
    }
    case Kind::send:
    case Kind::receive:
      return copy(ins[0] + at, outs[1] + at, bytes, s.stream);
    case Kind::barrier:
      return;
  }
}

}  // namespace kintsugi::comm
