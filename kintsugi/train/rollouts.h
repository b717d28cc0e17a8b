// Answers that the model samples between two steps, and their rewards (Shao et al. 2024, "DeepSeekMath", section 4.1).
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/evaluate/continue_texts.h"
#include "kintsugi/samples/rollout_samples.h"
#include "kintsugi/train/metrics.h"
#include "kintsugi/train/rank.h"
#include "kintsugi/train/reward.h"

namespace kintsugi::train {

// A reward that cannot be given: on all ranks, with the same text.
class RewardFailure : public base::UserError {
  using base::UserError::UserError;
};

class Rollouts {
 public:
  // Of a rank whose corpus has prompts, which must outlive it. Collective; throws SharedError for a reward that cannot
  // be given.
  explicit Rollouts(Rank& rank);

  // Samples [grpo] group answers to each prompt of the step after `step` others, with the current weights, and gives
  // them to the corpus: the batch of that step. An answer's advantage is its reward minus the mean of its group. The
  // same in every layout, up to rounding. Collective; throws RewardFailure.
  RolloutUse make(int64_t step);

  // The mean reward of the most likely answers to validation prompts: of all, or of the first `most`. Calls goes_on as
  // mean_loss_while does, and returns nothing if it returns false.
  std::optional<double> validate(int64_t most, const std::function<bool(int64_t done, int64_t all)>& goes_on);

 private:
  using Prompt = data::Prompts::Prompt;

  // Answers to as many prompts as the list `sample` has rows, or fewer. Each prompt samples from the stream of its
  // index, from `first_stream` on. Nothing if goes_on returns false.
  std::optional<std::vector<evaluate::Continued>> answer(std::span<const Prompt* const> prompts,
                                                         const evaluate::SampleOptions& how, uint64_t first_stream,
                                                         const std::function<bool()>& goes_on);
  // Of answers to prompts, on all ranks.
  std::vector<double> rewards(std::span<const Prompt* const> prompts, std::span<const evaluate::Continued> answers);

  Rank& rank_;
  samples::RolloutSamples& samples_;
  std::unique_ptr<text::Tokenizer> tokenizer_;
  std::vector<int32_t> ends_;
  std::optional<Reward> reward_;  // on rank 0
};

}  // namespace kintsugi::train
