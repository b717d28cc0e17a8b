// Samples of answers that the model gave, one per sample: the prompt, the answer, padding. Labels are the tokens of the
// answer, each with the answer's advantage as its weight and with its log-probability when it was sampled.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kintsugi/data/prompts.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/conversation_samples.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

// An answer to a prompt.
struct Rollout {
  std::vector<int32_t> ids;              // prompt, then answer
  size_t prompt = 0;                     // number of ids of the prompt
  std::vector<float> log_probabilities;  // of the answer's ids
  float advantage = 0;
};

struct RolloutOptions {
  int64_t sequence = 0;
  int64_t group = 1;                   // answers per prompt
  int64_t length = 0;                  // maximum number of ids of an answer
  TooLong too_long = TooLong::refuse;  // refuse or drop prompts that leave no room for an answer
  SampleOrder order = {};
};

class RolloutSamples : public SampleSource {
 public:
  // Throws UserError, with counts, if prompts are too long and are to be refused, or if none remain.
  RolloutSamples(std::shared_ptr<const data::Prompts> prompts, const RolloutOptions& options);

  const RolloutOptions& options() const { return options_; }
  size_t dropped() const { return prompts_->list().size() - members_.size(); }
  size_t num_prompts() const { return members_.size(); }
  // The n-th prompt of a run.
  const data::Prompts::Prompt& prompt(uint64_t n) const;

  // The answers of a step, in the order of its samples. Not while another thread fills batches.
  void set_rollouts(std::vector<Rollout> rollouts) { rollouts_ = std::move(rollouts); }

  const Parts& parts() const override { return parts_; }
  // Sample n of the run is rollout n modulo their number: those of the step that was set last.
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  std::shared_ptr<const data::Prompts> prompts_;
  RolloutOptions options_;
  std::vector<uint32_t> members_;  // prompts that fit
  std::vector<Rollout> rollouts_;
  Parts parts_;
};

}  // namespace kintsugi::samples
