// The reduction that all backends share, so that they produce the same bits.
#pragma once

#include <cstddef>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::comm {

struct Terms {
  std::span<const std::byte* const> ins;  // in rank order; each is read at in_at
  size_t in_at = 0;                       // in bytes, like all members below
  std::span<std::byte* const> outs;       // each is written at out_at; nullptr: not needed
  size_t out_at = 0;
  size_t bytes = 0;
  bool stream = false;  // the outputs exceed the caches: bypass them for outputs that are not inputs
};

// Sets every output to ((in0 + in1) + in2) + ..., element by element, accumulating bf16 and fp16 in fp32 with one final
// rounding; integers wrap, and their mean rounds toward zero. max and min propagate NaN. An output may alias an input
// exactly, but must not overlap one at another offset. Does not allocate.
void reduce(const Terms& terms, tensor::DType dtype, Reduction reduction);

// Copies, bypassing the caches if `stream`; `to` equals `from` or does not overlap it.
void copy(const std::byte* from, std::byte* to, size_t bytes, bool stream);

}  // namespace kintsugi::comm
