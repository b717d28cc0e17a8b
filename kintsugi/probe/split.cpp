#include "kintsugi/probe/split.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace kintsugi::probe {
namespace {

// A permutation of the rows; the standard's shuffle differs between libraries.
std::vector<size_t> shuffled(size_t rows, uint64_t seed) {
  std::vector<size_t> order(rows);
  std::iota(order.begin(), order.end(), size_t{0});
  std::mt19937_64 random(seed);
  for (size_t i = rows; i > 1; --i) std::swap(order[i - 1], order[random() % i]);
  return order;
}

}  // namespace

std::vector<Division> make_folds(size_t rows, size_t folds, uint64_t seed) {
  const std::vector<size_t> order = shuffled(rows, seed);
  std::vector<Division> all(folds);
  size_t begin = 0;
  for (size_t f = 0; f < folds; ++f) {
    const size_t end = begin + rows / folds + (f < rows % folds ? 1 : 0);
    for (size_t i = 0; i < rows; ++i) (i >= begin && i < end ? all[f].test : all[f].train).push_back(order[i]);
    std::ranges::sort(all[f].train), std::ranges::sort(all[f].test);
    begin = end;
  }
  return all;
}

Division divide(size_t rows, const Shares& shares, uint64_t seed) {
  const std::vector<size_t> order = shuffled(rows, seed);
  const auto count = [&](int64_t percent) {
    return static_cast<size_t>(std::lround(static_cast<double>(rows) * static_cast<double>(percent) / 100));
  };
  const size_t test = count(shares.test), validate = std::min(count(shares.validate), rows - test);
  Division d;
  for (size_t i = 0; i < rows; ++i)
    (i < test ? d.test : i < test + validate ? d.validate : d.train).push_back(order[i]);
  for (std::vector<size_t>* part : {&d.train, &d.validate, &d.test}) std::ranges::sort(*part);
  return d;
}

}  // namespace kintsugi::probe
