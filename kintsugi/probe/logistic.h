// Multinomial logistic regression with an L2 penalty: a linear probe.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kintsugi/probe/matrix.h"

namespace kintsugi::probe {

struct LogisticModel {
  Matrix coefficients = {};             // [class column]
  std::vector<double> intercepts = {};  // [class]
  double gradient = 0;                  // largest element of the gradient at the end
  int iterations = 0;

  // The most likely class of each row; the first in a tie.
  std::vector<size_t> predict(const Matrix& x) const;
};

struct LogisticOptions {
  double strength = 1.0;    // C: the loss is C times the sum of the cross entropies plus half the squared coefficients
  double tolerance = 1e-6;  // of each element of the gradient, per row
  int most_iterations = 1000;
};

// Minimizes the loss, which is convex with a unique minimum of the coefficients, by L-BFGS (Liu, Nocedal 1989) with a
// backtracking line search. Intercepts are not penalized. `labels` are below `classes`.
LogisticModel fit_logistic(const Matrix& x, std::span<const size_t> labels, size_t classes,
                           const LogisticOptions& options);

double accuracy(std::span<const size_t> predicted, std::span<const size_t> labels);

}  // namespace kintsugi::probe
