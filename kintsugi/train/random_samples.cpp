#include "kintsugi/train/random_samples.h"

#include <algorithm>

#include "kintsugi/config/choices.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/batches.h"

namespace kintsugi::train {

RandomSamples::RandomSamples(const config::Settings& s)
    : row_(row_of(s)),
      vocab_(static_cast<uint32_t>(s.model.vocab)),
      types_(static_cast<uint32_t>(std::max<int64_t>(s.model.token_types, 1))),
      classes_(config::objective(s.model) == config::Objective::classes ? static_cast<uint32_t>(s.model.outputs) : 2),
      seed_(s.train.seed) {}

void RandomSamples::fill(uint64_t first, const data::BatchView& batch) const {
  const auto key = kernels::random_key(seed_, "samples"), other = kernels::random_key(seed_, "documents"),
             labels = kernels::random_key(seed_, "labels"), numbers = kernels::random_key(seed_, "numbers");
  data::for_each_row(batch, row_, [&](size_t row, const data::BatchView& view) {
    const uint64_t sample = first + row;
    const auto token = [&](uint32_t at) { return kernels::random_word(key, sample, at); };
    for (uint32_t i = 0; i < view.tokens.size(); ++i) view.tokens[i] = static_cast<int32_t>(token(i) % vocab_);
    for (uint32_t i = 0; i < view.labels.size(); ++i) {
      const uint32_t next = token(i + 1);
      view.labels[i] = next / vocab_ % 16 == 0 ? data::kIgnored : static_cast<int32_t>(next % vocab_);
    }
    const uint32_t second =
        view.starts.empty() ? 0 : kernels::random_word(other, sample, 0) % static_cast<uint32_t>(view.starts.size());
    for (uint32_t i = 0; i < view.starts.size(); ++i) view.starts[i] = i < second ? 0 : static_cast<int32_t>(second);
    for (uint32_t i = 0; i < view.types.size(); ++i)
      view.types[i] = static_cast<int32_t>(i * types_ / view.types.size());
    for (int32_t& c : view.classes) c = static_cast<int32_t>(kernels::random_word(labels, sample, 0) % classes_);
    std::ranges::fill(view.weights, 1.0f);
    uint32_t at = 0;
    for (const std::span<float> list : {view.features, view.targets})
      for (float& x : list)  // -1 to 1
        x = static_cast<float>(static_cast<int32_t>(kernels::random_word(numbers, sample, at++))) * 0x1p-31f;
  });
}

}  // namespace kintsugi::train
