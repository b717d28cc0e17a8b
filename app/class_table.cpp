#include "app/class_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kintsugi::app {

std::vector<RankedClass> best_classes(std::span<const float> logits, int64_t count) {
  std::vector<RankedClass> all;
  if (logits.empty()) return all;
  const double most = *std::ranges::max_element(logits);
  double sum = 0;
  for (const float z : logits) sum += std::exp(static_cast<double>(z) - most);
  for (size_t c = 0; c < logits.size(); ++c)
    all.push_back({static_cast<int64_t>(c), std::exp(static_cast<double>(logits[c]) - most) / sum});
  std::ranges::stable_sort(all, std::greater(), &RankedClass::probability);
  all.resize(static_cast<size_t>(std::min<int64_t>(count, std::ssize(all))));
  return all;
}

Confusion::Confusion(int64_t classes)
    : counts(static_cast<size_t>(classes), std::vector<int64_t>(static_cast<size_t>(classes), 0)) {}

void Confusion::add(int32_t label, std::span<const float> logits) {
  if (label < 0 || label >= std::ssize(counts)) return;
  const std::vector<RankedClass> best = best_classes(logits, 5);
  ++labelled;
  ++counts[static_cast<size_t>(label)][static_cast<size_t>(best[0].number)];
  first += best[0].number == label;
  among_five += std::ranges::any_of(best, [&](const RankedClass& c) { return c.number == label; });
}

std::string Confusion::table(bool all) const {
  std::string text;
  if (all) {
    text = "label  ";
    for (size_t c = 0; c < counts.size(); ++c) text += fmt::format("{:>6}", c);
    text += '\n';
  } else {
    text = "label  images  recall  most frequent errors\n";
  }
  for (size_t label = 0; label < counts.size(); ++label) {
    const std::vector<int64_t>& row = counts[label];
    const int64_t images = std::accumulate(row.begin(), row.end(), int64_t{0});
    if (images == 0) continue;
    if (all) {
      text += fmt::format("{:>5}  ", label);
      for (const int64_t n : row) text += fmt::format("{:>6}", n);
      text += '\n';
      continue;
    }
    std::vector<size_t> others;
    for (size_t c = 0; c < row.size(); ++c)
      if (c != label && row[c] > 0) others.push_back(c);
    std::ranges::stable_sort(others, std::greater(), [&](size_t c) { return row[c]; });
    text += fmt::format("{:>5}  {:>6}  {:>5.0f}%", label, images,
                        100.0 * static_cast<double>(row[label]) / static_cast<double>(images));
    for (size_t i = 0; i < std::min<size_t>(others.size(), 3); ++i)
      text += fmt::format("{} {} ({})", i ? "," : " ", others[i], row[others[i]]);
    text += '\n';
  }
  return text;
}

}  // namespace kintsugi::app
