// Transformations of features that are fitted to training rows: standardization, and principal components.
#pragma once

#include <vector>

#include "kintsugi/probe/matrix.h"

namespace kintsugi::probe {

// Subtracts the mean of each column and divides by its standard deviation (of the population); a constant column
// becomes 0.
struct Standardizer {
  std::vector<double> means = {}, deviations = {};

  Matrix apply(const Matrix& x) const;
};
Standardizer fit_standardizer(const Matrix& x);

// Projects centered rows on the directions of largest variance.
struct Pca {
  std::vector<double> means = {};
  Matrix components = {};              // [k columns]; the element of largest magnitude of each is positive
  std::vector<double> variances = {};  // of each component, with the divisor rows - 1
  double all_variance = 0;             // of all columns

  Matrix apply(const Matrix& x) const;
};
// Throws UserError for more components than columns, or than rows - 1.
Pca fit_pca(const Matrix& x, size_t components);

}  // namespace kintsugi::probe
