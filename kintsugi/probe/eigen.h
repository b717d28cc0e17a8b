// Eigenvalues and eigenvectors of a real symmetric matrix.
#pragma once

#include <vector>

#include "kintsugi/probe/matrix.h"

namespace kintsugi::probe {

struct Eigen {
  std::vector<double> values = {};  // descending
  Matrix vectors = {};              // row i: the unit eigenvector of values[i]
};

// Reduces the matrix to a tridiagonal one by Householder reflections, and diagonalizes that by implicit QR steps with
// Wilkinson's shift (Golub, Van Loan 2013, "Matrix computations", sections 8.3.1 and 8.3.4). Only the lower triangle is
// read. Throws UserError for elements that are not finite.
Eigen symmetric_eigen(Matrix a);

}  // namespace kintsugi::probe
