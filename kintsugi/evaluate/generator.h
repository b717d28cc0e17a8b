// Generates text token by token with key-value caches.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/evaluate/draw.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Runs the lists `prefill` and `decode` of a program (models::build_generation) on as many texts as it has samples, on
// one rank or, called collectively, on several.
class Generator {
 public:
  // The executor has the weights loaded and must outlive the generator, as must `all`: all ranks of the program; null:
  // one rank.
  explicit Generator(run::Executor& executor, comm::Communicator* all = nullptr);

  // Continues the prompts (nonempty, identical on all ranks) in lockstep: first reads as many tokens of each as the
  // shortest has; then a text with more prompt left reads its own next token while others sample theirs. Calls
  // next(text, id) with each sampled id on every rank; a text ends where any rank returns false, and the call returns
  // when all texts have ended. When the caches are full, rereads the last half of each text as if it were the prompt.
  // Up to rounding, a text gets the ids it would get alone, except that each text samples from a stream of its own.
  void generate(std::span<const std::vector<int32_t>> prompts, const SampleOptions& options,
                const std::function<bool(size_t text, int32_t id)>& next);
  // The same for a single text.
  void generate(std::span<const int32_t> prompt, const SampleOptions& options,
                const std::function<bool(int32_t)>& next);

  // Reads the first `read` tokens of each text: those after the last call's, or all of them after restart(). The output
  // "logits" of the list step() then follows the last one.
  void read_to(std::span<const Text> texts, int64_t read);
  void restart() { first_ = position_ = 0; }
  program::Step step() const { return step_; }

  // Returns the logits that follow a single text, by prefill alone; the text must fit into the caches. Empty on ranks
  // without the head.
  std::span<const float> read(std::span<const int32_t> text);
  // Returns the logits that follow one more token.
  std::span<const float> feed(int32_t token);
  // The result of the last pass, [batch vocab]: inside `next`, the logits that its id was sampled from.
  std::span<const float> logits();

  int64_t capacity() const { return capacity_; }  // positions that fit into the caches
  int64_t position() const { return position_; }

 private:
  void prefill(std::span<const Text> texts, int64_t read);
  void decode(std::span<const Text> texts);
  void run(program::Step step, kernels::Numbers numbers, std::span<const Text> texts, int64_t count, int64_t columns);
  void end_together(std::vector<int32_t>& goes_on);

  run::Executor& executor_;
  comm::Communicator* all_;
  Draws draws_;
  int64_t batch_ = 0;
  int64_t capacity_ = 0;
  int64_t chunk_ = 0;                            // tokens per call of the list `prefill`
  int64_t first_ = 0, position_ = 0;             // per text, the tokens from `first_` on that are cached
  program::Step step_ = program::Step::prefill;  // the last
  std::vector<int32_t> tokens_;                  // [batch seq]
  std::vector<float> logits_;
};

// A sequence length for the prefill program: the smallest power of two from 16 to 512 that fits the prompt, at most
// `cache`.
int64_t prompt_bucket(int64_t prompt, int64_t cache);

}  // namespace kintsugi::evaluate
