#include "kintsugi/data/batch.h"

#include <algorithm>

namespace kintsugi::data {

void BatchMemory::resize(int64_t rows, const RowSizes& sizes) {
  const auto set = [&](auto& numbers, int64_t size) { numbers.resize(static_cast<size_t>(rows * size)); };
  set(tokens, sizes.tokens);
  set(labels, sizes.labels);
  set(starts, sizes.starts);
  set(types, sizes.types);
  set(classes, sizes.classes);
  set(weights, sizes.weights);
  set(features, sizes.features);
  set(targets, sizes.targets);
}

BatchView BatchMemory::view() {
  return {tokens, labels, starts, types, classes, weights, features, targets};
}

void BatchMemory::copy(const BatchView& from) {
  const BatchView to = view();
  for_each_part([&](const auto& part) {
    base::require((from.*part.view).size() == (to.*part.view).size(), "data", "{} {} to {}", (from.*part.view).size(),
                  part.name, (to.*part.view).size());
    std::ranges::copy(from.*part.view, (to.*part.view).begin());
  });
}

void set_label(const BatchView& row, std::span<const float> label, bool ended) {
  if (ended)
    std::ranges::fill(row.targets, kNoTarget);
  else if (!row.targets.empty())
    std::ranges::copy(label, row.targets.begin());
  for (int32_t& c : row.classes) c = ended ? kIgnored : static_cast<int32_t>(label[0]);
  std::ranges::fill(row.weights, 1.0f);
}

}  // namespace kintsugi::data
