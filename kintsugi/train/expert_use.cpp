#include "kintsugi/train/expert_use.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kintsugi/models/step.h"

namespace kintsugi::train {

std::optional<ExpertUse> expert_use(const config::Settings& settings, const run::Executor& executor) {
  const auto is_tokens = [](const program::StateInfo& state) { return state.name == models::kExpertTokens; };
  if (std::ranges::none_of(executor.program().states, is_tokens)) return std::nullopt;
  const std::span<double> tokens = executor.state(models::kExpertTokens).as<double>();
  ExpertUse use = {{tokens.begin(), tokens.end()}, executor.number(models::kExpertBalance)};
  if (settings.train.expert_overflow == "drop") {
    const config::Model& m = settings.model;
    const int64_t choices = settings.train.global_batch * settings.train.sequence * m.experts_per_token,
                  all = choices * (m.layers - m.dense_layers);
    use.dropped = all - std::llround(std::accumulate(tokens.begin(), tokens.end(), 0.0));
  }
  return use;
}

}  // namespace kintsugi::train
