#include <algorithm>
#include <cstring>

#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/parts.h"

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kGrain = 1 << 15;  // bytes

// Calls f(byte of the stacked operand, byte of the whole one or -1, bytes) for the longest runs that are contiguous in
// both, over shares of the stacked operand that do not depend on the layout of its dims.
template <typename F>
void for_pieces(const KernelCall& call, const Parts& s, const F& f) {
  const int64_t line = s.length * s.below;
  call.team.for_shares(s.parts * s.above * line, kGrain, [&](base::Range r, int) {
    const tensor::DimIndex* index = nullptr;
    int64_t part = -1;
    for (int64_t at = r.begin; at < r.end;) {
      const int64_t row = at / line, begin = at - row * line, end = std::min(line, r.end - row * line);
      if (row / s.above != part) part = row / s.above, index = &part_index(call, part);
      const int64_t above = row % s.above * s.size;
      int64_t place = 0;  // of a segment within the line
      for (const tensor::Segment& segment : index->segments()) {
        const int64_t bytes = segment.count * s.below;
        const int64_t from = std::max(begin, place), until = std::min(end, place + bytes);
        if (from < until) {
          const int64_t other = segment.global < 0 ? -1 : (above + segment.global) * s.below + from - place;
          f(row * line + from, other, until - from);
        }
        place += bytes;
      }
      at = row * line + end;
    }
  });
}

}  // namespace

bool stack_takes(const Operands&) {
  return true;
}

void stack(const KernelCall& call) {
  const std::byte* x = call.ins[0].data;
  std::byte* y = call.outs[0].data;
  for_pieces(call, parts_of(call, call.ins[0], call.outs[0]), [=](int64_t to, int64_t from, int64_t bytes) {
    if (from < 0) {
      std::memset(y + to, 0, static_cast<size_t>(bytes));
    } else {
      std::memcpy(y + to, x + from, static_cast<size_t>(bytes));
    }
  });
}

void unstack(const KernelCall& call) {
  const std::byte* y = call.ins[0].data;
  std::byte* x = call.outs[0].data;
  for_pieces(call, parts_of(call, call.outs[0], call.ins[0]), [=](int64_t from, int64_t to, int64_t bytes) {
    if (to >= 0) std::memcpy(x + to, y + from, static_cast<size_t>(bytes));
  });
}

}  // namespace kintsugi::kernels::cpu
