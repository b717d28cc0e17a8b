// Samples the next id of a text.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/kernels/host/likely.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

// Applied in this order: bias and penalties to the logits, temperature, then the three filters of candidates.
struct SampleOptions {
  double temperature = 1.0;  // 0: greedy
  int64_t top_k = 0;         // 0: all
  uint64_t seed = 1;
  int64_t vocab = 0;  // sample only ids below it; 0: all
  // Nucleus sampling: keep the smallest set of most likely tokens whose probabilities, after top_k, sum to top_p
  // (Holtzman et al. 2020, "The curious case of neural text degeneration", section 3.1).
  double top_p = 1.0;
  double min_p = 0.0;  // keep only tokens with at least this fraction of the highest probability
  // For tokens in the text so far, including the prompt: divides positive logits and multiplies negative ones (Keskar
  // et al. 2019, "CTRL", section 4.1).
  double repetition_penalty = 1.0;
  // Subtracted from the logits of generated tokens: once, and per occurrence.
  double presence_penalty = 0.0, frequency_penalty = 0.0;
  std::vector<std::pair<int32_t, double>> logit_bias = {};  // added to the logits of the given ids

  // Whether logits change before sampling, which takes the text so far.
  bool changes_logits() const {
    return repetition_penalty != 1.0 || presence_penalty != 0.0 || frequency_penalty != 0.0 || !logit_bias.empty();
  }
};

using kernels::host::Logits;

// Returns the most likely id at temperature 0, otherwise one sampled from softmax(logits / temperature) over the top_k.
// A pure function of (logits, options, number, stream): `number` counts the tokens sampled so far, `stream` identifies
// the text. Rounding differences in the logits, as between layouts, almost never change the id: each id has its own
// random number, so two ids would have to be nearly tied.
int32_t sample(const Logits& logits, const SampleOptions& options, uint64_t number, uint64_t stream = 0);
inline int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number,
                      uint64_t stream = 0) {
  return sample(Logits{logits.data(), std::ssize(logits), tensor::DType::f32}, options, number, stream);
}

// Applies `options` to the logits of a text of `ids`, the first `prompt` of which were given.
std::vector<float> changed_logits(const Logits& logits, const SampleOptions& options, std::span<const int32_t> ids,
                                  size_t prompt);
// Samples from the changed logits. Returns kNotFinite if the given ones are not all finite, so that the sampling rank
// can notify the others.
constexpr int32_t kNotFinite = -1;
int32_t sample_next(const Logits& logits, const SampleOptions& options, std::span<const int32_t> ids, size_t prompt,
                    uint64_t stream);

// A text being continued.
struct Text {
  std::vector<int32_t> ids;
  size_t prompt = 0;  // number of given ids; the rest was sampled
  uint64_t stream = 0;
  bool ended = false;

  // Whether the next id must be sampled once `read` ids of the text have been read.
  bool needs_one(size_t read) const { return !ended && ids.size() == read; }
};

// Writes tokens [begin, end) of each text to a row of `columns`; fills missing tokens with 0.
void fill_rows(std::span<const Text> texts, size_t begin, size_t end, size_t columns, std::vector<int32_t>& rows);

// Samples from the logits [batch vocab] that a program computes for several texts. They reside on the ranks of one
// stage, that of the head; the first of these ranks samples and broadcasts the ids.
class Draws {
 public:
  // `all`: all ranks of the program, which construct and call this collectively; null: one rank. `step`: a list that
  // computes logits. Both must outlive it.
  Draws(const run::Executor& executor, program::Step step, comm::Communicator* all);

  // Returns the next id of each text that needs one after `read`, and 0 for the others. `log_probabilities`, if given,
  // receives those of the ids in the model's own distribution.
  std::vector<int32_t> draw(program::Step step, std::span<const Text> texts, size_t read, const SampleOptions& options,
                            std::vector<float>* log_probabilities = nullptr) const;

 private:
  const run::Executor& executor_;
  comm::Communicator* all_;
  int from_ = 0;  // the first rank with the logits
};

}  // namespace kintsugi::evaluate
