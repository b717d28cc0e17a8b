// Which id comes next in a text.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/kernels/cpu/likely.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Applied in this order: bias and penalties to the logits, temperature, then the three that leave candidates out.
struct SampleOptions {
  double temperature = 1.0;  // 0: the most likely token, always
  int64_t top_k = 0;         // 0: all
  uint64_t seed = 1;
  int64_t vocab = 0;  // only ids below it; 0: all
  // The fewest most likely tokens whose probabilities, after top_k, add up to top_p (Holtzman et al. 2020, "The curious
  // case of neural text degeneration", section 3.1).
  double top_p = 1.0;
  double min_p = 0.0;  // only tokens with at least this share of the probability of the most likely one
  // Of tokens in the text so far, its prompt included: a positive logit is divided by it, a negative one multiplied
  // (Keskar et al. 2019, "CTRL", section 4.1).
  double repetition_penalty = 1.0;
  // Subtracted from the logits of generated tokens: once, and for each occurrence.
  double presence_penalty = 0.0, frequency_penalty = 0.0;
  std::vector<std::pair<int32_t, double>> logit_bias = {};  // added to the logits of some ids

  // Whether logits are changed before a token is chosen, which takes the text so far.
  bool changes_logits() const {
    return repetition_penalty != 1.0 || presence_penalty != 0.0 || frequency_penalty != 0.0 || !logit_bias.empty();
  }
};

using kernels::cpu::Logits;

// The most likely id at temperature 0, else one drawn from softmax(logits / temperature) over the top_k. A pure
// function of (logits, options, number, stream): `number` counts the tokens drawn so far, `stream` is of the text. What
// rounding changes in the logits, as another layout does, hardly ever changes the id: each id has a random number of
// its own, and two would have to be as good as equal.
int32_t sample(const Logits& logits, const SampleOptions& options, uint64_t number, uint64_t stream = 0);
inline int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number,
                      uint64_t stream = 0) {
  return sample(Logits{logits.data(), std::ssize(logits), tensor::DType::f32}, options, number, stream);
}

// The logits that `options` make of those given, for a text of `ids`, the first `prompt` of which were given.
std::vector<float> changed_logits(const Logits& logits, const SampleOptions& options, std::span<const int32_t> ids,
                                  size_t prompt);
// sample() of the changed logits; kNotFinite where the given ones are not all finite, so that the rank that draws can
// tell the others, which require_finite then ends alike: UserError, of a text that has so many tokens.
constexpr int32_t kNotFinite = -1;
void require_finite(int32_t drawn, size_t tokens);
int32_t sample_next(const Logits& logits, const SampleOptions& options, std::span<const int32_t> ids, size_t prompt,
                    uint64_t stream);

// A text that is continued, and how far it is.
struct Text {
  std::vector<int32_t> ids;
  size_t prompt = 0;  // ids that were given; what follows was drawn
  uint64_t stream = 0;
  bool ended = false;

  // Whether the next id must be drawn once `read` ids of the text are read.
  bool needs_one(size_t read) const { return !ended && ids.size() == read; }
};

// Tokens [begin, end) of each text, a row of `columns` for each; what a text does not have is 0.
void fill_rows(std::span<const Text> texts, size_t begin, size_t end, size_t columns, std::vector<int32_t>& rows);

// Draws from the logits [batch vocab] that a program makes of several texts. They are on the ranks of one stage, the
// head's; the first of these draws, and all ranks are told.
class Draws {
 public:
  // `all`: all ranks of the program, which construct theirs and draw together; null: one rank. `step`: a list that
  // makes logits. Both must outlive it.
  Draws(const run::Executor& executor, program::Step step, comm::Communicator* all);

  // The next id of each text that needs one after `read`; of the others 0.
  std::vector<int32_t> draw(program::Step step, std::span<const Text> texts, size_t read,
                            const SampleOptions& options) const;

 private:
  const run::Executor& executor_;
  comm::Communicator* all_;
  int from_ = 0;  // the first rank that has the logits
};

}  // namespace kintsugi::evaluate
