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
  std::span<std::byte* const> outs;       // each is written at out_at; nullptr: nobody wants it
  size_t out_at = 0;
  size_t bytes = 0;
  bool stream = false;  // what is written is too much to stay in caches: outs that are no ins go past them
};

// Every out becomes ((in0 + in1) + in2) + ..., element by element, in fp32 for bf16 and fp16 with one rounding at the
// end; integers wrap, and their mean is rounded towards zero. A NaN in any term makes max and min NaN. What is written
// may be what is read, byte for byte, but not with a shift. Allocates nothing.
void reduce(const Terms& terms, tensor::DType dtype, Reduction reduction);

// Copies, past the caches if `stream`; `to` is `from` or does not overlap it.
void copy(const std::byte* from, std::byte* to, size_t bytes, bool stream);

}  // namespace kintsugi::comm
