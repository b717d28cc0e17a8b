#include "kintsugi/data/number_samples.h"

#include <algorithm>

namespace kintsugi::data {

NumberSamples::NumberSamples(std::shared_ptr<const NumberTable> table, NumberOptions options)
    : table_(std::move(table)), options_(options) {
  const int64_t columns = options_.features + std::max<int64_t>(options_.targets, 1);
  base::require(columns == table_->columns(), "data", "{} columns of {}", columns, table_->columns());
}

RowSizes NumberSamples::row() const {
  const int64_t classes = options_.targets == 0 ? 1 : 0;
  return {.classes = classes, .weights = classes, .features = options_.features, .targets = options_.targets};
}

void NumberSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, row(), [&](uint64_t at, const BatchView& view) {
    const uint64_t sample = options_.order(first + at, num_samples());
    const bool ended = sample >= num_samples();
    const std::span<const float> numbers = table_->row(ended ? 0 : static_cast<int64_t>(sample));
    const auto features = numbers.first(static_cast<size_t>(options_.features));
    const auto rest = numbers.subspan(features.size());
    std::ranges::copy(features, view.features.begin());
    set_label(view, rest, ended);
  });
}

}  // namespace kintsugi::data
