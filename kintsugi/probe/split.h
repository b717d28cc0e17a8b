// Random divisions of rows: folds, and shares to train, validate and test.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::probe {

struct Division {
  std::vector<size_t> train = {}, validate = {}, test = {};  // ascending
};

// Every row is tested in one fold; the sizes of folds differ by at most one. Same seed, same folds on every machine.
std::vector<Division> make_folds(size_t rows, size_t folds, uint64_t seed);

// Shares in percent that sum to 100; validation and test get their shares rounded to the nearest.
struct Shares {
  int64_t train = 80, validate = 10, test = 10;
};
Division divide(size_t rows, const Shares& shares, uint64_t seed);

}  // namespace kintsugi::probe
