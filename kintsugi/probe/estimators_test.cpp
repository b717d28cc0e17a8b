// Estimators against scikit-learn 1.9 on the same data, and against their definitions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <numeric>
#include <random>

#include "kintsugi/base/error.h"
#include "kintsugi/probe/bayesian_ridge.h"
#include "kintsugi/probe/eigen.h"
#include "kintsugi/probe/logistic.h"
#include "kintsugi/probe/pca.h"
#include "kintsugi/probe/split.h"
#include "kintsugi/probe/table.h"
#include "tests/paths.h"

namespace kintsugi::probe::estimators_test {
namespace {

// x[i][j] = sin(1 + 3 i + 7 j + i j)
Matrix some_features() {
  Matrix x(40, 4);
  for (size_t i = 0; i < x.rows; ++i)
    for (size_t j = 0; j < x.columns; ++j) x(i, j) = std::sin(static_cast<double>(1 + 3 * i + 7 * j + i * j));
  return x;
}

std::vector<double> some_targets(const Matrix& x) {
  std::vector<double> y;
  for (size_t i = 0; i < x.rows; ++i)
    y.push_back(2 * x(i, 0) - x(i, 1) + 0.5 * x(i, 2) + 0.3 * std::cos(5 * static_cast<double>(i)) + 3);
  return y;
}

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

TEST(Probe, EigenvectorsReconstructTheMatrix) {
  std::mt19937_64 random(3);
  for (const size_t n : {1, 2, 3, 8, 40}) {
    for (const char* kind : {"random", "repeated", "zero", "wide range", "tiny"}) {
      Matrix a(n, n);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j <= i; ++j) {
          double e = static_cast<double>(random() >> 11) / static_cast<double>(1ull << 53) - 0.5;
          if (kind == std::string("zero")) e = 0;
          if (kind == std::string("tiny")) e = i == j ? 0 : e * 1e-300;
          if (kind == std::string("repeated")) e = i == j ? static_cast<double>(i % 2) : 0;
          if (kind == std::string("wide range")) e *= std::pow(10.0, -static_cast<double>(i + j) / 4);
          a(i, j) = a(j, i) = e;
        }
      const Eigen eigen = symmetric_eigen(a);
      for (size_t i = 0; i < n; ++i)
        for (size_t j = 0; j < n; ++j) {
          double back = 0;
          for (size_t k = 0; k < n; ++k) back += eigen.values[k] * eigen.vectors(k, i) * eigen.vectors(k, j);
          EXPECT_NEAR(back, a(i, j), 1e-13) << kind << " " << n;
          EXPECT_NEAR(dot(eigen.vectors.row(i), eigen.vectors.row(j)), i == j ? 1 : 0, 1e-12) << kind << " " << n;
        }
      EXPECT_TRUE(std::ranges::is_sorted(eigen.values, std::greater<>()));
    }
  }
}

TEST(Probe, BayesianRidgeIsThatOfScikitLearn) {
  const Matrix x = some_features();
  const BayesianRidge model = fit_bayesian_ridge(x, some_targets(x));
  expect_near(model.coefficients, {2.0008171112171014, -0.986375033448756, 0.6988947738055676, -0.01076429516168731},
              1e-10);
  EXPECT_NEAR(model.intercept, 3.004368745332548, 1e-10);
  EXPECT_NEAR(model.alpha, 34.59506835661155, 1e-8);
  EXPECT_NEAR(model.lambda, 0.7311608890594554, 1e-10);
  EXPECT_EQ(model.iterations, 4);
}

TEST(Probe, PrincipalComponentsAreThoseOfScikitLearn) {
  const Pca pca = fit_pca(some_features(), 2);
  expect_near(pca.components.values,
              {0.16605247136644946, 0.8088639972495864, 0.28378158669132497, -0.4874767909977568, -0.057774696461875254,
               0.06229737545492204, 0.8224417377908889, 0.5624684074680728},
              1e-10);
  expect_near(pca.variances, {0.5293126385209979, 0.5141779776283736}, 1e-12);
  EXPECT_NEAR(pca.all_variance, 1.990680521693363, 1e-12);
  const Matrix y = pca.apply(some_features());
  EXPECT_NEAR(centered_gram(y, column_means(y))(0, 1), 0, 1e-12);  // uncorrelated
  EXPECT_THROW(fit_pca(some_features(), 5), base::UserError);
}

TEST(Probe, LogisticRegressionIsThatOfScikitLearn) {
  const Matrix x = some_features();
  std::vector<size_t> labels;
  for (size_t i = 0; i < x.rows; ++i) {
    const double scores[] = {x(i, 0) + 0.4 * std::sin(9 * static_cast<double>(i)), x(i, 1), x(i, 2)};
    labels.push_back(static_cast<size_t>(std::ranges::max_element(scores) - scores));
  }
  const LogisticModel model = fit_logistic(x, labels, 3, {.strength = 2, .tolerance = 1e-10});
  expect_near(model.coefficients.values,
              {1.8045325346406813, -1.2940260972248911, -0.7480284867390274, -0.2855418468355601, -0.6378682845650898,
               2.211467793612129, -0.7740718109856667, -0.07270321345398055, -1.1666642500755915, -0.9174416963872383,
               1.5221002977246942, 0.3582450602895406},
              1e-6);
  expect_near(model.intercepts, {0.000910190734923766, -0.41334408440203196, 0.4124338936671083}, 1e-6);
  EXPECT_NEAR(accuracy(model.predict(x), labels), 0.875, 1e-12);
}

TEST(Probe, FoldsTestEachRowOnce) {
  const std::vector<Division> folds = make_folds(23, 5, 7);
  std::vector<int> tested(23);
  for (const Division& d : folds) {
    EXPECT_EQ(d.train.size() + d.test.size(), 23u);
    EXPECT_GE(d.test.size(), 4u);
    EXPECT_LE(d.test.size(), 5u);
    for (const size_t r : d.test) ++tested[r];
  }
  EXPECT_EQ(tested, std::vector<int>(23, 1));
  const Division d = divide(1252, {80, 10, 10}, 1);
  EXPECT_EQ(d.train.size(), 1002u);
  EXPECT_EQ(d.validate.size(), 125u);
  EXPECT_EQ(d.test.size(), 125u);
  EXPECT_EQ(divide(1252, {80, 10, 10}, 1).test, d.test);
  EXPECT_NE(divide(1252, {80, 10, 10}, 2).test, d.test);
}

// FORGE's regression of Fe-Pt energies (Yin et al. 2023): published mean squared errors 0.2207 by concentration and
// pair interactions, and 0.2049 with embeddings of the concentration.
TEST(Probe, FePtRegressionHasThePublishedErrors) {
  const std::filesystem::path folder = std::filesystem::path(tests::shared_folder()) / "data/forge";
  if (!std::filesystem::exists(folder)) GTEST_SKIP() << "the shared data is not there";
  const CsvTable table = read_csv(folder / "FePt_lsms.csv"), embeddings = read_csv(folder / "FePt_emb_matscibert.csv");
  const Matrix x = table.numbers({0, 1, 2, 3, 4, 5, 6}), added = embeddings.numbers({1, 2, 3});
  std::vector<size_t> rows;
  for (const int64_t r : matching_rows(table, 0, embeddings, 0)) rows.push_back(static_cast<size_t>(r));
  const std::vector<double> y = table.numbers({7}).values;
  for (const auto& [features, published] : {std::pair(x, 0.2207), std::pair(joined(x, rows_of(added, rows)), 0.2049)}) {
    std::vector<double> errors;
    for (const Division& d : make_folds(x.rows, 5, 1)) {
      std::vector<double> train, test;
      for (const size_t r : d.train) train.push_back(y[r]);
      for (const size_t r : d.test) test.push_back(y[r]);
      const BayesianRidge model = fit_bayesian_ridge(rows_of(features, d.train), train);
      errors.push_back(mean_squared_error(model.predict(rows_of(features, d.test)), test));
    }
    const double mean = std::accumulate(errors.begin(), errors.end(), 0.0) / 5;
    EXPECT_NEAR(mean, published, 0.001);
  }
}

}  // namespace
}  // namespace kintsugi::probe::estimators_test
