// The slots in use of a value [batch expert slot wide]: for each sample and expert the first `counts` slots of the
// whole, of which the local block has a contiguous part. Values of other slots are undefined, and never read.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kintsugi/base/error.h"
#include "kintsugi/base/thread_team.h"
#include "kintsugi/kernels/kernel_set.h"

namespace kintsugi::kernels::cpu {

// Whether dims are batch, expert, slot and one more, in that order.
inline bool has_slot_rows(const tensor::Shape& shape) {
  return shape.rank() == 4 && shape[0].name == "batch" && shape[1].name == "expert" && shape[2].name == "slot";
}

class FilledSlots {
 public:
  // counts: [batch expert]
  FilledSlots(const KernelCall& call, const tensor::Shape& of, const tensor::View& counts)
      : counts_(reinterpret_cast<const int32_t*>(counts.data)),
        batch_(of[0].size),
        experts_(of[1].size),
        slots_(of[2].size) {
    const std::span<const tensor::Segment> segments = call.index("slot").segments();
    if (segments.empty() || segments[0].global < 0) return;
    base::require(segments.size() == 1 || segments[1].global < 0, call.kind, "slots are not cut contiguously");
    begin_ = segments[0].global;
    length_ = segments[0].count;
  }

  int64_t batch() const { return batch_; }
  int64_t experts() const { return experts_; }
  int64_t slots() const { return slots_; }  // local, used or not
  // Local slots in use.
  int64_t filled(int64_t sample, int64_t expert) const { return filled_of(sample * experts_ + expert); }
  int64_t filled(int64_t expert) const {
    int64_t sum = 0;
    for (int64_t b = 0; b < batch_; ++b) sum += filled(b, expert);
    return sum;
  }

  // Calls f(first, count) for runs of rows in use; the threads share them equally.
  template <typename F>
  void for_rows(base::ThreadTeam& team, int64_t min_rows, const F& f) const {
    int64_t all = 0;
    for (int64_t i = 0; i < batch_ * experts_; ++i) all += filled_of(i);
    team.for_shares(all, min_rows, [&](base::Range mine, int) {
      for (int64_t i = 0, at = 0; i < batch_ * experts_ && at < mine.end; ++i) {
        const int64_t n = filled_of(i), from = std::max(mine.begin, at), to = std::min(mine.end, at + n);
        if (from < to) f(i * slots_ + from - at, to - from);
        at += n;
      }
    });
  }

 private:
  int64_t filled_of(int64_t i) const { return counts_[i] <= begin_ ? 0 : std::min(counts_[i] - begin_, length_); }

  const int32_t* counts_;
  int64_t batch_, experts_, slots_, begin_ = INT64_MAX, length_ = 0;
};

// Calls part(call, elements) for all elements of the outputs of an elementwise operation; with counts only for those of
// slots in use.
template <typename Part>
void for_gated_elements(const KernelCall& call, const tensor::View& counts, const Part& part) {
  constexpr int64_t kSome = 4096;
  const tensor::Shape& shape = call.outs[0].shape();
  if (!counts.data) {
    call.team.for_shares(shape.elements(), kSome, [&](base::Range r, int) { part(call, r); });
    return;
  }
  const int64_t wide = shape[3].size;
  FilledSlots(call, shape, counts)
      .for_rows(call.team, kSome / std::max<int64_t>(wide, 1) + 1, [&](int64_t row, int64_t n) {
        part(call, base::Range{row * wide, (row + n) * wide});
      });
}

}  // namespace kintsugi::kernels::cpu
