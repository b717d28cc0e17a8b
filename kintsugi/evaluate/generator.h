// Text from a model, token by token, with caches of keys and values.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/evaluate/draw.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Runs the lists `prefill` and `decode` of a program (models::build_generation) over as many texts as it has samples,
// on one rank or on several that construct and call theirs together.
class Generator {
 public:
  // The executor has the weights, and must outlive the generator, as must `all`: all ranks of the program; null: one
  // rank.
  explicit Generator(run::Executor& executor, comm::Communicator* all = nullptr);

  // Continues the prompts (none empty, the same on all ranks) in step: what all have is read first, and a text that has
  // more prompt left reads its own next token while others draw theirs. next(text, id) is called with each drawn id on
  // every rank; the text ends where it returns false on any, and the call ends with the last text. When the caches are
  // full, the last half of each text is read again, as if it were the prompt. A text has the ids that its prompt would
  // have alone, up to rounding, but that each text draws from a stream of its own.
  void generate(std::span<const std::vector<int32_t>> prompts, const SampleOptions& options,
                const std::function<bool(size_t text, int32_t id)>& next);
  // The same of one text.
  void generate(std::span<const int32_t> prompt, const SampleOptions& options,
                const std::function<bool(int32_t)>& next);

  // Of one text: the logits that follow it, by prefill alone; it must fit into the caches. Empty on ranks without the
  // head.
  std::span<const float> read(std::span<const int32_t> text);
  // The logits that follow one more token.
  std::span<const float> feed(int32_t token);
  // The result of the last pass, [batch vocab]: while `next` is called, the logits that its id was chosen from.
  std::span<const float> logits();

  int64_t capacity() const { return capacity_; }  // positions that fit into the caches
  int64_t position() const { return position_; }

 private:
  void read_to(std::span<const Text> texts, int64_t read);
  void prefill(std::span<const Text> texts, int64_t read);
  void decode(std::span<const Text> texts);
  void run(program::Step step, kernels::Numbers numbers, std::span<const Text> texts, int64_t count, int64_t columns);
  void end_together(std::vector<int32_t>& goes_on);

  run::Executor& executor_;
  comm::Communicator* all_;
  Draws draws_;
  int64_t batch_ = 0;
  int64_t capacity_ = 0;
  int64_t chunk_ = 0;                            // tokens of the list `prefill`
  int64_t first_ = 0, position_ = 0;             // of each text, the tokens from `first_` on that are in the caches
  program::Step step_ = program::Step::prefill;  // the last
  std::vector<int32_t> tokens_;                  // [batch seq]
  std::vector<float> logits_;
};

// A length for the prefill program: the power of two from 16 to 512 that holds the prompt, at most `cache`.
int64_t prompt_bucket(int64_t prompt, int64_t cache);

}  // namespace kintsugi::evaluate
