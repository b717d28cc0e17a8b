// Bayesian ridge regression: linear regression whose noise and regularization follow from the data.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/probe/matrix.h"

namespace kintsugi::probe {

struct LinearModel {
  std::vector<double> coefficients = {};
  double intercept = 0;

  std::vector<double> predict(const Matrix& x) const;
};

struct BayesianRidge : LinearModel {
  double alpha = 0;   // precision of the noise
  double lambda = 0;  // precision of the coefficients
  int iterations = 0;
};

// Maximizes the evidence by the updates of MacKay 1992, "Bayesian interpolation", with gamma priors of 1e-6 on both
// precisions (Tipping 2001, appendix A), until the coefficients change by less than 1e-3 in sum or after 300
// iterations: the defaults of scikit-learn's BayesianRidge. At least two rows. Throws UserError if the result is not
// finite.
BayesianRidge fit_bayesian_ridge(const Matrix& x, std::span<const double> y);

double mean_squared_error(std::span<const double> predicted, std::span<const double> y);

}  // namespace kintsugi::probe
