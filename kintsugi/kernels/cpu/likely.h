// The likely ones of some logits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::kernels::cpu {

// Of fp32, bf16 or fp16, side by side.
struct Logits {
  const void* data = nullptr;
  int64_t count = 0;
  tensor::DType dtype = tensor::DType::f32;

  float operator[](int64_t i) const;
};

// The first of the largest; 0 if none is a number above -infinity.
int64_t most_likely(const Logits& logits);

// The k largest, the largest first; of equal ones that which comes first. Fewer if fewer are above -infinity.
std::vector<int64_t> most_likely(const Logits& logits, int64_t k);

// The random numbers of a draw: for each logit a word (kernels/random.h), at index 4 * block + i of the stream.
struct Noise {
  std::array<uint32_t, 2> key = {};
  uint64_t stream = 0, block = 0;
};
// The one whose score is the largest: its logit times `scale`, a finite number of at least 0, and a number drawn from
// Gumbel's distribution, so that each is drawn with the probability that softmax gives it (Maddison, Tarlow, Minka
// 2014, "A* sampling", section 2). Scores are taken in fp64. Of `some`, in their order; or of all.
int64_t draw(const Logits& logits, double scale, const Noise& noise, const std::vector<int64_t>& some);
int64_t draw(const Logits& logits, double scale, const Noise& noise);

}  // namespace kintsugi::kernels::cpu
