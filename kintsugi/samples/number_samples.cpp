#include "kintsugi/samples/number_samples.h"

#include <algorithm>

namespace kintsugi::samples {

NumberSamples::NumberSamples(std::shared_ptr<const data::NumberTable> table, NumberOptions options)
    : table_(std::move(table)), options_(options), parts_(labels_of(options.targets)) {
  parts_.insert(parts_.begin(), features_part(options_.features));
  const int64_t columns = options_.features + std::max<int64_t>(options_.targets, 1);
  base::require(columns == table_->columns(), "data", "{} columns of {}", columns, table_->columns());
}

void NumberSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_, [&](uint64_t at, const BatchView& view) {
    const uint64_t sample = options_.order(first + at, num_samples());
    const bool ended = sample >= num_samples();
    const std::span<const float> numbers = table_->row(ended ? 0 : static_cast<int64_t>(sample));
    const auto features = numbers.first(static_cast<size_t>(options_.features));
    const auto rest = numbers.subspan(features.size());
    std::ranges::copy(features, view.get<float>("features").begin());
    set_label(view, rest, ended);
  });
}

}  // namespace kintsugi::samples
