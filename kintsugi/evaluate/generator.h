// Text from a model, token by token, with caches of keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

struct SampleOptions {
  double temperature = 1.0;  // 0: the most likely token, always
  int64_t top_k = 0;         // 0: all
  uint64_t seed = 1;
};

// The most likely id at temperature 0, else one drawn from softmax(logits / temperature) over the top_k. A pure
// function of (logits, options, number): `number` counts the tokens drawn so far.
int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number);

// Runs the lists "prefill" and "decode" of a program of one sample (models::build_generation).
class Generator {
 public:
  // The executor has the weights, and outlives the generator. caches: positions that fit.
  explicit Generator(run::Executor& executor);

  // Feeds the prompt (not empty), then calls `next` with each new id until it returns false. Where the caches are full,
  // the last half of the text is read again, as if it were the prompt.
  void generate(std::span<const int32_t> prompt, const SampleOptions& options,
                const std::function<bool(int32_t)>& next);

  // The logits that follow `text`, which fits into the caches, by prefill alone.
  std::span<const float> read(std::span<const int32_t> text);
  // The logits that follow one more token.
  std::span<const float> feed(int32_t token);

  int64_t capacity() const { return capacity_; }
  int64_t position() const { return position_; }

 private:
  std::span<const float> logits(std::string_view list);

  run::Executor& executor_;
  tensor::View prompt_;  // int32 [batch:1 seq]
  tensor::View token_;   // int32 [batch:1 seq:1]
  int64_t capacity_ = 0;
  int64_t position_ = 0;  // tokens in the caches
  std::vector<float> logits_;
};

// A length for the prefill program: the power of two from 16 to 512 that holds the prompt, at most `cache`.
int64_t prompt_bucket(int64_t prompt, int64_t cache);

}  // namespace kintsugi::evaluate
