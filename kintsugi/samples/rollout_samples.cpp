#include "kintsugi/samples/rollout_samples.h"

#include <algorithm>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::samples {

RolloutSamples::RolloutSamples(std::shared_ptr<const data::Prompts> prompts, const RolloutOptions& options)
    : prompts_(std::move(prompts)),
      options_(options),
      parts_{tokens_part(options.sequence), labels_part(options.sequence), token_weights_part(options.sequence),
             sampled_part(options.sequence)} {
  const std::vector<data::Prompts::Prompt>& all = prompts_->list();
  size_t longest = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (all[i].ids.size() > all[longest].ids.size()) longest = i;
    if (std::ssize(all[i].ids) + options_.length <= options_.sequence + 1) members_.push_back(static_cast<uint32_t>(i));
  }
  const std::string name = base::in_quotes(prompts_->path().string());
  if (dropped() > 0 && options_.too_long == TooLong::refuse)
    throw base::UserError("data",
                          "{}: {} of {} prompts leave no room for {} tokens of an answer (grpo.length) within "
                          "train.sequence {}; the longest, in line {}, has {} tokens: raise train.sequence, or set "
                          "data.long_conversations to \"drop\"",
                          name, dropped(), all.size(), options_.length, options_.sequence, all[longest].line,
                          all[longest].ids.size());
  if (members_.empty())
    throw base::UserError("data", "{}: none of {} prompts is left within train.sequence {}; raise it", name, all.size(),
                          options_.sequence);
}

const data::Prompts::Prompt& RolloutSamples::prompt(uint64_t n) const {
  const uint64_t at = options_.order(n, num_prompts());
  base::require(at < num_prompts(), "samples", "prompt {} of {}", at, num_prompts());
  return prompts_->list()[members_[at]];
}

void RolloutSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_, [&](uint64_t at, const BatchView& view) {
    base::require(!rollouts_.empty(), "samples", "a batch of rollouts before there are any");
    const Rollout& rollout = rollouts_[(first + at) % rollouts_.size()];
    const std::span<int32_t> tokens = view.get<int32_t>("tokens"), labels = view.get<int32_t>("labels");
    const std::span<float> weights = view.get<float>("token_weights"), sampled = view.get<float>("sampled");
    const size_t used = rollout.ids.size() - 1;
    for (size_t i = 0; i < static_cast<size_t>(options_.sequence); ++i) {
      const bool answer = i < used && i + 1 >= rollout.prompt;
      if (!tokens.empty()) tokens[i] = i < used ? rollout.ids[i] : -1;
      if (!labels.empty()) labels[i] = answer ? rollout.ids[i + 1] : kIgnored;
      if (!weights.empty()) weights[i] = answer ? rollout.advantage : 0.0f;
      if (!sampled.empty()) sampled[i] = answer ? rollout.log_probabilities[i + 1 - rollout.prompt] : 0.0f;
    }
  });
}

}  // namespace kintsugi::samples
