#include "kintsugi/train/random_samples.h"

#include <algorithm>

#include "kintsugi/config/choices.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/batches.h"

namespace kintsugi::train {

RandomSamples::RandomSamples(const config::Settings& s)
    : parts_(parts_of(s)),
      vocab_(static_cast<uint32_t>(s.model.vocab)),
      types_(static_cast<uint32_t>(std::max<int64_t>(s.model.token_types, 1))),
      classes_(config::objective(s.model) == config::Objective::classes ||
                       config::objective(s.model) == config::Objective::pixels
                   ? static_cast<uint32_t>(s.model.outputs)
                   : 2),
      is_float_images_(s.model.image_dtype == "fp32"),
      seed_(s.train.seed) {}

void RandomSamples::fill(uint64_t first, const samples::BatchView& batch) const {
  const auto key = kernels::random_key(seed_, "samples"), other = kernels::random_key(seed_, "documents"),
             labels = kernels::random_key(seed_, "labels"), numbers = kernels::random_key(seed_, "numbers");
  samples::for_each_row(batch, parts_, [&](uint64_t row, const samples::BatchView& view) {
    const uint64_t sample = first + row;
    const auto token = [&](uint32_t at) { return kernels::random_word(key, sample, at); };
    const std::span<int32_t> tokens = view.get<int32_t>("tokens"), next = view.get<int32_t>("labels"),
                             starts = view.get<int32_t>("starts"), types = view.get<int32_t>("types");
    for (uint32_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int32_t>(token(i) % vocab_);
    for (uint32_t i = 0; i < next.size(); ++i) {
      const uint32_t drawn = token(i + 1);
      next[i] = drawn / vocab_ % 16 == 0 ? samples::kIgnored : static_cast<int32_t>(drawn % vocab_);
    }
    const uint32_t second =
        starts.empty() ? 0 : kernels::random_word(other, sample, 0) % static_cast<uint32_t>(starts.size());
    for (uint32_t i = 0; i < starts.size(); ++i) starts[i] = i < second ? 0 : static_cast<int32_t>(second);
    for (uint32_t i = 0; i < types.size(); ++i) types[i] = static_cast<int32_t>(i * types_ / types.size());
    for (int32_t& c : view.get<int32_t>("classes"))
      c = static_cast<int32_t>(kernels::random_word(labels, sample, 0) % classes_);
    for (int32_t& c : view.get<int32_t>("mixed_classes"))
      c = static_cast<int32_t>(kernels::random_word(labels, sample, 1) % classes_);
    std::ranges::fill(view.get<float>("mixed_weights"), 0.25f);
    std::ranges::fill(view.get<float>("weights"), view.get<float>("mixed_weights").empty() ? 1.0f : 0.75f);
    uint32_t pixel = 0;
    if (!is_float_images_)
      for (uint8_t& x : view.get<uint8_t>("images"))
        x = static_cast<uint8_t>(kernels::random_word(numbers, sample, pixel++) >> 24);
    uint32_t place = 0;
    for (int32_t& c : view.get<int32_t>("pixel_classes"))
      c = static_cast<int32_t>(kernels::random_word(labels, sample, ++place) % classes_);
    if (is_float_images_)
      for (float& x : view.get<float>("images"))
        x = static_cast<float>(static_cast<int32_t>(kernels::random_word(numbers, sample, pixel++))) * 0x1p-31f;
    for (double& x : view.get<double>("reference"))  // -1 to 1
      x = static_cast<double>(static_cast<int32_t>(kernels::random_word(labels, sample, 1))) * 0x1p-31;
    uint32_t at = 0;
    for (float& x : view.get<float>("sampled"))  // -2 to 0, log-probabilities of few ids
      x = static_cast<float>(kernels::random_word(numbers, sample, at++)) * -0x1p-31f;
    for (const std::string_view name : {"token_weights", "features", "targets"})
      for (float& x : view.get<float>(name))  // -1 to 1
        x = static_cast<float>(static_cast<int32_t>(kernels::random_word(numbers, sample, at++))) * 0x1p-31f;
  });
}

}  // namespace kintsugi::train
