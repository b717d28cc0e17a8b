// Text from a model, token by token, with caches of keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
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

// Runs the lists `prefill` and `decode` of a program of one sample (models::build_generation), on one rank or on
// several that construct and call theirs together. The logits are on the ranks of one stage, the head's; the first of
// these chooses the next token, and all ranks feed it.
class Generator {
 public:
  // The executor has the weights, and must outlive the generator, as must `all`: all ranks of the program; null: one
  // rank.
  explicit Generator(run::Executor& executor, comm::Communicator* all = nullptr);

  // Feeds the prompt (not empty, the same on all ranks), then calls `next` with each new id on every rank, until it
  // returns false on any. When the caches are full, the last half of the text is read again, as if it were the prompt.
  void generate(std::span<const int32_t> prompt, const SampleOptions& options,
                const std::function<bool(int32_t)>& next);

  // The logits that follow `text`, which must fit into the caches, by prefill alone. Empty on ranks without the head.
  std::span<const float> read(std::span<const int32_t> text);
  // The logits that follow one more token.
  std::span<const float> feed(int32_t token);
  // The result of the last read or feed: while `next` is called, the logits that its id was chosen from.
  std::span<const float> logits() const { return logits_; }

  int64_t capacity() const { return capacity_; }  // positions that fit into the caches
  int64_t position() const { return position_; }

 private:
  void run(program::Step step, kernels::Numbers numbers, std::span<const int32_t> tokens);
  int32_t choose(const SampleOptions& options, uint64_t number);
  bool all_continue(bool mine);

  run::Executor& executor_;
  comm::Communicator* all_;
  int logits_rank_ = 0;  // the first rank that has the logits
  int64_t capacity_ = 0;
  int64_t position_ = 0;         // tokens in the caches
  std::vector<int32_t> prompt_;  // [seq], of the list `prefill`
  std::vector<float> logits_;    // [vocab]
};

// A length for the prefill program: the power of two from 16 to 512 that holds the prompt, at most `cache`.
int64_t prompt_bucket(int64_t prompt, int64_t cache);

}  // namespace kintsugi::evaluate
