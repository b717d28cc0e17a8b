#include "kintsugi/comm/mpi/segments.h"

#include <algorithm>

#include "kintsugi/comm/mpi/check.h"
#include "kintsugi/comm/reduce.h"

namespace kintsugi::comm {
namespace {

constexpr size_t kSegment = 4 << 20;
constexpr size_t kGrain = 64;  // shares and segments begin at whole cache lines, and so at whole elements

// For operations with parts, a segment is a range of each part.
size_t segment_of(const Operation& operation, int size) {
  return operation.has_parts() ? std::max(kSegment / size / kGrain * kGrain, kGrain) : kSegment;
}

size_t length_of(const Operation& operation, int size) {
  return operation.has_parts() ? operation.bytes / size : operation.bytes;
}

}  // namespace

size_t num_segments(const Operation& operation, int size) {
  if (operation.kind == Kind::barrier) return 1;
  const size_t segment = segment_of(operation, size);
  return (length_of(operation, size) + segment - 1) / segment;
}

Lane::Lane(MPI_Comm comm, int rank, int size, int tag)
    : comm_(comm),
      rank_(rank),
      size_(size),
      tag_(tag),
      staging_(new std::byte[kSegment + (static_cast<size_t>(size) + 1) * kGrain + kSegment / size + kGrain]),
      requests_(static_cast<size_t>(size) * 2),
      terms_(size) {}

size_t Lane::share_begin(int rank) const {
  return std::min(bytes_, static_cast<size_t>(rank) * share_);
}

size_t Lane::share_size(int rank) const {
  return share_begin(rank + 1) - share_begin(rank);
}

void Lane::send(const std::byte* from, size_t bytes, int to) {
  if (bytes == 0) return;
  check_mpi(MPI_Isend(from, static_cast<int>(bytes), MPI_BYTE, to, tag_, comm_, &requests_[num_requests_++]));
}

void Lane::receive(std::byte* to, size_t bytes, int from) {
  if (bytes == 0) return;
  check_mpi(MPI_Irecv(to, static_cast<int>(bytes), MPI_BYTE, from, tag_, comm_, &requests_[num_requests_++]));
}

void Lane::start(const Operation& operation, size_t segment) {
  operation_ = operation;
  const size_t length = length_of(operation, size_);
  part_ = operation.has_parts() ? length : 0;
  begin_ = segment * segment_of(operation, size_);
  bytes_ = std::min(segment_of(operation, size_), length - std::min(length, begin_));
  share_ = operation.kind == Kind::reduce_scatter ? (bytes_ + kGrain - 1) / kGrain * kGrain
                                                  : ((bytes_ + size_ - 1) / size_ + kGrain - 1) / kGrain * kGrain;
  phase_ = Phase::first;
  num_requests_ = 0;
  first_exchange();
}

bool Lane::advance() {
  if (phase_ == Phase::idle) return false;
  int done = 0;
  check_mpi(MPI_Testall(num_requests_, requests_.data(), &done, MPI_STATUSES_IGNORE));
  if (done == 0) return false;
  num_requests_ = 0;
  if (phase_ == Phase::first) {
    add();
    if (second_exchange()) {
      phase_ = Phase::second;
      return true;
    }
  }
  phase_ = Phase::idle;
  return true;
}

void Lane::first_exchange() {
  const std::byte* in = operation_.in == nullptr ? nullptr : operation_.in + begin_;
  std::byte* out = operation_.out == nullptr ? nullptr : operation_.out + begin_;
  const bool is_root = rank_ == operation_.root;
  const auto part = [&](int r) { return static_cast<size_t>(r) * part_; };
  if (operation_.kind == Kind::all_gather || (operation_.kind == Kind::gather && is_root)) {
    copy(in, out + part(rank_), bytes_, false);
  } else if (operation_.kind == Kind::scatter && is_root) {
    copy(in + part(rank_), out, bytes_, false);
  } else if (operation_.kind == Kind::all_to_all) {
    copy(in + part(rank_), out + part(rank_), bytes_, false);
  }
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
    switch (operation_.kind) {
      case Kind::all_reduce:
      case Kind::reduce:
        receive(staged(from), share_size(rank_), from);
        send(in + share_begin(to), share_size(to), to);
        break;
      case Kind::reduce_scatter:
        receive(staged(from), bytes_, from);
        send(in + part(to), bytes_, to);
        break;
      case Kind::broadcast:
        if (is_root) send(in + share_begin(to), share_size(to), to);
        if (from == operation_.root) receive(out + share_begin(rank_), share_size(rank_), from);
        break;
      case Kind::all_gather:
        receive(out + part(from), bytes_, from);
        send(in, bytes_, to);
        break;
      case Kind::scatter:
        if (from == operation_.root) receive(out, bytes_, from);
        if (is_root) send(in + part(to), bytes_, to);
        break;
      case Kind::gather:
        if (is_root) receive(out + part(from), bytes_, from);
        if (to == operation_.root) send(in, bytes_, to);
        break;
      case Kind::all_to_all:
        receive(out + part(from), bytes_, from);
        send(in + part(to), bytes_, to);
        break;
      case Kind::barrier:
        receive(staging_.get() + 1, 1, from);
        send(staging_.get(), 1, to);
        break;
      case Kind::send:
      case Kind::receive:
        break;
    }
  }
}

void Lane::add() {
  if (!operation_.reduces()) return;
  const bool scatters = operation_.kind == Kind::reduce_scatter;
  const size_t mine = begin_ + (scatters ? rank_ * part_ : share_begin(rank_));
  for (int r = 0; r < size_; ++r) terms_[r] = r == rank_ ? operation_.in + mine : staged(r);
  std::byte* out = staged(size_);
  if (scatters) {
    out = operation_.out + begin_;
  } else if (operation_.kind == Kind::all_reduce || rank_ == operation_.root) {
    out = operation_.out + mine;
  }
  const size_t bytes = scatters ? bytes_ : share_size(rank_);
  if (bytes != 0) reduce({terms_, 0, {&out, 1}, 0, bytes, false}, operation_.dtype, operation_.reduction);
}

bool Lane::second_exchange() {
  std::byte* out = operation_.out == nullptr ? nullptr : operation_.out + begin_;
  const bool is_root = rank_ == operation_.root;
  for (int step = 1; step < size_; ++step) {
    const int to = (rank_ + step) % size_, from = (rank_ + size_ - step) % size_;
    if (operation_.kind == Kind::all_reduce) {
      receive(out + share_begin(from), share_size(from), from);
      send(out + share_begin(rank_), share_size(rank_), to);
    } else if (operation_.kind == Kind::reduce) {
      if (is_root) receive(out + share_begin(from), share_size(from), from);
      if (to == operation_.root) send(staged(size_), share_size(rank_), to);
    } else if (operation_.kind == Kind::broadcast) {
      if (!is_root) receive(out + share_begin(from), share_size(from), from);
      if (to != operation_.root) send(out + share_begin(rank_), share_size(rank_), to);
    }
  }
  return num_requests_ > 0;
}

}  // namespace kintsugi::comm
