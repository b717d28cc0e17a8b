// The addition that every backend shares, so that their bits are the same.
#pragma once

#include <cstddef>
#include <span>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::comm {

struct Terms {
  std::span<const std::byte* const> ins;  // in the order of ranks; each is read at in_at
  size_t in_at = 0;                       // bytes, as all below
  std::span<std::byte* const> outs;       // each is written at out_at; nullptr: not needed
  size_t out_at = 0;
  size_t bytes = 0;
  bool stream = false;  // too much is written to stay in caches: outs that are no ins bypass them
};

// Every out becomes ((in0 + in1) + in2) + ..., element by element, in fp32 for bf16 and fp16 with one rounding at the
// end; integers wrap, and their mean is rounded towards zero. A NaN in any term makes max and min NaN. An output may
// be exactly an input, but must not overlap one at another offset. Allocates nothing.
void reduce(const Terms& terms, tensor::DType dtype, Reduction reduction);

// Copies, bypassing the caches if `stream`; `to` is `from` or does not overlap it.
void copy(const std::byte* from, std::byte* to, size_t bytes, bool stream);

}  // namespace kintsugi::comm
