// Selection of likely logits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::host {

// fp32, bf16 or fp16, contiguous.
struct Logits {
  const void* data = nullptr;
  int64_t count = 0;
  tensor::DType dtype = tensor::DType::f32;

  float operator[](int64_t i) const;
};

// The first maximum; 0 if none is a number above -infinity.
int64_t most_likely(const Logits& logits);

// The k largest, in descending order; ties by index. Fewer if fewer are above -infinity.
std::vector<int64_t> most_likely(const Logits& logits, int64_t k);

// The random numbers of a draw: one word per logit (kernels/random.h), at index 4 * block + i of the stream.
struct Noise {
  std::array<uint32_t, 2> key = {};
  uint64_t stream = 0, block = 0;
};
// Samples by the Gumbel-max trick: the maximum of logit times `scale`, finite and at least 0, plus a Gumbel-distributed
// number, so that each is drawn with its softmax probability (Maddison, Tarlow, Minka 2014, "A* sampling", section 2).
// Scores are in fp64. Among `some`, in their order; or among all.
int64_t draw(const Logits& logits, double scale, const Noise& noise, const std::vector<int64_t>& some);
int64_t draw(const Logits& logits, double scale, const Noise& noise);

}  // namespace kintsugi::kernels::host
