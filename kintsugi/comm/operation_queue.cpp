#include "kintsugi/comm/operation_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/reduce.h"

namespace kintsugi::comm {
namespace {

constexpr size_t kChunk = 64 << 10;
constexpr size_t kStream = 32 << 20;  // about the size of the last-level cache

// A message has a send at member 0 and a receive at member 1.
bool agree(const Operation& a, const Operation& b) {
  return a.is_message() ? a.bytes == b.bytes : a.agrees_with(b);
}

}  // namespace

OperationQueue::OperationQueue(int members, uint64_t entries)
    : members_(members),
      num_entries_(entries),
      entries_(new Entry[entries]),
      posts_(new Post[entries * members]),
      ins_(entries * members),
      outs_(entries * members) {}

bool OperationQueue::is_free(uint64_t n) const {
  return entry(n).round.load(std::memory_order_seq_cst) == n / num_entries_;
}

bool OperationQueue::has_posted(uint64_t n, int member) const {
  return is_free(n) && posts_[first(n) + member].here.load(std::memory_order_acquire);
}

bool OperationQueue::post(uint64_t n, int member, const Operation& operation) {
  const size_t at = first(n) + member;
  posts_[at].operation = operation;
  ins_[at] = operation.in;
  outs_[at] = operation.out;
  posts_[at].here.store(true, std::memory_order_release);
  if (entry(n).posted.fetch_add(1, std::memory_order_acq_rel) + 1 < members_) return false;
  make_ready(n);
  return true;
}

void OperationQueue::make_ready(uint64_t n) {
  Entry& e = entry(n);
  const Operation& operation = posts_[first(n)].operation;
  for (int m = 1; m < members_; ++m) {
    if (!agree(operation, posts_[first(n) + m].operation)) {
      e.state.store(State::mismatched, std::memory_order_release);
      return;
    }
  }
  uint64_t units = 1;
  if (operation.kind == Kind::all_to_all) {
    units = static_cast<uint64_t>(members_) * members_;
  } else if (operation.has_parts()) {
    units = members_;
  }
  e.unit = operation.has_parts() ? operation.bytes / members_ : operation.bytes;
  e.stream = operation.bytes * members_ >= kStream;
  e.chunks_of_unit = (e.unit + kChunk - 1) / kChunk;
  e.chunks = units * e.chunks_of_unit;
  e.state.store(e.chunks == 0 ? State::finished : State::ready, std::memory_order_release);
}

bool OperationQueue::has_work(uint64_t n) const {
  const Entry& e = entry(n);
  return state(n) == State::ready && e.next.load(std::memory_order_relaxed) < e.chunks;
}

bool OperationQueue::move_chunk(uint64_t n) {
  Entry& e = entry(n);
  const uint64_t chunk = e.next.fetch_add(1, std::memory_order_relaxed);
  if (chunk >= e.chunks) return false;
  move(n, chunk);
  if (e.done.fetch_add(1, std::memory_order_acq_rel) + 1 < e.chunks) return false;
  e.state.store(State::finished, std::memory_order_release);
  return true;
}

bool OperationQueue::leave(uint64_t n) {
  Entry& e = entry(n);
  if (e.left.fetch_add(1, std::memory_order_acq_rel) + 1 < members_) return false;
  for (int m = 0; m < members_; ++m) posts_[first(n) + m].here.store(false, std::memory_order_relaxed);
  e.posted.store(0, std::memory_order_relaxed);
  e.left.store(0, std::memory_order_relaxed);
  e.next.store(0, std::memory_order_relaxed);
  e.done.store(0, std::memory_order_relaxed);
  e.state.store(State::open, std::memory_order_relaxed);
  e.round.fetch_add(1, std::memory_order_seq_cst);
  return true;
}

std::string OperationQueue::mismatch(uint64_t n, const std::vector<int>& world_ranks) const {
  const Operation& operation = posts_[first(n)].operation;
  for (int m = 1; m < members_; ++m) {
    const Operation& other = posts_[first(n) + m].operation;
    if (agree(operation, other)) continue;
    const auto text = [&](const Operation& o) { return o.is_message() ? o.text() : o.text_in_full(); };
    return fmt::format("rank {} calls {}, rank {} {}", world_ranks[0], text(operation), world_ranks[m], text(other));
  }
  throw base::InternalError("comm", "all operations agree");
}

// Chunks are numbered unit by unit. A unit is the part of one rank (all_to_all: of one pair of ranks), or the whole
// buffer if there are no parts.
void OperationQueue::move(uint64_t n, uint64_t chunk) const {
  const Entry& e = entry(n);
  const Operation& operation = posts_[first(n)].operation;
  const uint64_t unit = chunk / e.chunks_of_unit;
  const size_t at = chunk % e.chunks_of_unit * kChunk;
  const size_t bytes = std::min(kChunk, e.unit - at);
  const std::span<const std::byte* const> ins(ins_.data() + first(n), members_);
  const std::span<std::byte* const> outs(outs_.data() + first(n), members_);
  const size_t in_whole = unit * e.unit + at;
  switch (operation.kind) {
    case Kind::all_reduce:
    case Kind::reduce:
      return reduce({ins, at, outs, at, bytes, e.stream}, operation.dtype, operation.reduction);
    case Kind::reduce_scatter:
      return reduce({ins, in_whole, outs.subspan(unit, 1), at, bytes, e.stream}, operation.dtype, operation.reduction);
    case Kind::broadcast:
      for (std::byte* out : outs) copy(ins[operation.root] + at, out + at, bytes, e.stream);
      return;
    case Kind::all_gather:
      for (std::byte* out : outs) copy(ins[unit] + at, out + in_whole, bytes, e.stream);
      return;
    case Kind::scatter:
      return copy(ins[operation.root] + in_whole, outs[unit] + at, bytes, e.stream);
    case Kind::gather:
      return copy(ins[unit] + at, outs[operation.root] + in_whole, bytes, e.stream);
    case Kind::all_to_all: {
      const uint64_t from = unit / members_, to = unit % members_;
      return copy(ins[from] + to * e.unit + at, outs[to] + from * e.unit + at, bytes, e.stream);
    }
    case Kind::send:
    case Kind::receive:
      return copy(ins[0] + at, outs[1] + at, bytes, e.stream);
    case Kind::barrier:
      return;
  }
}

}  // namespace kintsugi::comm
