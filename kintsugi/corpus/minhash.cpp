#include "kintsugi/corpus/minhash.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/data/hash.h"

namespace kintsugi::corpus {

double Bands::probability(double similarity) const {
  return 1 - std::pow(1 - std::pow(similarity, static_cast<double>(rows)), static_cast<double>(bands));
}

Bands choose_bands(double threshold, int64_t hashes) {
  Bands best;
  double distance = std::numeric_limits<double>::infinity();
  for (int64_t rows = 1; rows <= hashes; ++rows) {
    const Bands bands = {hashes / rows, rows};
    // 1 - (1 - s^r)^b = 1/2
    const double half =
        std::pow(1 - std::pow(0.5, 1 / static_cast<double>(bands.bands)), 1 / static_cast<double>(rows));
    if (std::abs(half - threshold) >= distance) continue;
    distance = std::abs(half - threshold);
    best = bands;
  }
  return best;
}

MinHash::MinHash(Bands bands) : bands_(bands) {
  const auto count = static_cast<size_t>(bands.bands * bands.rows);
  for (size_t i = 0; i < count; ++i) {
    factors_.push_back(data::mix(0x6b696e747375u, i, 0u) | 1);
    offsets_.push_back(data::mix(0x6b696e747375u, i, 1u));
  }
}

std::vector<uint64_t> MinHash::keys(const std::vector<uint64_t>& shingles) const {
  if (shingles.empty()) return {};
  const size_t count = factors_.size();
  std::vector<uint32_t> least(count, std::numeric_limits<uint32_t>::max());
  for (const uint64_t shingle : shingles)
    for (size_t i = 0; i < count; ++i)  // multiply-shift (Dietzfelbinger et al. 1997)
      least[i] = std::min(least[i], static_cast<uint32_t>((shingle * factors_[i] + offsets_[i]) >> 32));
  std::vector<uint64_t> keys;
  for (int64_t b = 0; b < bands_.bands; ++b) {
    uint64_t key = static_cast<uint64_t>(b);
    for (int64_t r = 0; r < bands_.rows; ++r) key = data::mix(key, least[static_cast<size_t>(b * bands_.rows + r)]);
    keys.push_back(key);
  }
  return keys;
}

}  // namespace kintsugi::corpus
