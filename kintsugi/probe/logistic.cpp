#include "kintsugi/probe/logistic.h"

#include <algorithm>
#include <cmath>
#include <deque>

#include "kintsugi/base/error.h"

namespace kintsugi::probe {
namespace {

using Vector = std::vector<double>;

// Parameters: [class, column + 1], the intercept last. The loss is divided by C and the number of rows.
struct LogisticLoss {
  const Matrix& x;
  std::span<const size_t> labels;
  size_t classes;
  double penalty;  // of half the squared coefficients

  double operator()(const Vector& w, Vector& gradient) const {
    const size_t width = x.columns + 1;
    const double share = 1 / static_cast<double>(x.rows);
    std::ranges::fill(gradient, 0.0);
    Vector scores(classes);
    double loss = 0;
    for (size_t r = 0; r < x.rows; ++r) {
      const std::span<const double> row = x.row(r);
      for (size_t k = 0; k < classes; ++k)
        scores[k] = dot(row, std::span(w).subspan(k * width, x.columns)) + w[k * width + x.columns];
      const double top = std::ranges::max(scores);
      double sum = 0;
      for (const double s : scores) sum += std::exp(s - top);
      loss += share * (std::log(sum) + top - scores[labels[r]]);
      for (size_t k = 0; k < classes; ++k) {
        const double d = share * (std::exp(scores[k] - top) / sum - (k == labels[r] ? 1 : 0));
        for (size_t c = 0; c < x.columns; ++c) gradient[k * width + c] += d * row[c];
        gradient[k * width + x.columns] += d;
      }
    }
    for (size_t k = 0; k < classes; ++k)
      for (size_t c = 0; c < x.columns; ++c) {
        loss += penalty / 2 * w[k * width + c] * w[k * width + c];
        gradient[k * width + c] += penalty * w[k * width + c];
      }
    return loss;
  }
};

struct Update {
  Vector step, change;  // of the parameters and the gradient
  double product;       // of both
};

// The product of the approximate inverse Hessian and the gradient, negated (Nocedal, Wright 2006, algorithm 7.4).
Vector direction_of(const Vector& gradient, const std::deque<Update>& updates) {
  Vector q = gradient;
  std::vector<double> weights(updates.size());
  for (size_t i = updates.size(); i-- > 0;) {
    weights[i] = dot(updates[i].step, q) / updates[i].product;
    for (size_t j = 0; j < q.size(); ++j) q[j] -= weights[i] * updates[i].change[j];
  }
  if (!updates.empty()) {
    const double scale = updates.back().product / dot(updates.back().change, updates.back().change);
    for (double& e : q) e *= scale;
  }
  for (size_t i = 0; i < updates.size(); ++i) {
    const double back = dot(updates[i].change, q) / updates[i].product;
    for (size_t j = 0; j < q.size(); ++j) q[j] += (weights[i] - back) * updates[i].step[j];
  }
  for (double& e : q) e = -e;
  return q;
}

double largest(const Vector& v) {
  double most = 0;
  for (const double e : v) most = std::max(most, std::fabs(e));
  return most;
}

}  // namespace

std::vector<size_t> LogisticModel::predict(const Matrix& x) const {
  std::vector<size_t> classes(x.rows);
  for (size_t r = 0; r < x.rows; ++r) {
    double best = -INFINITY;
    for (size_t k = 0; k < coefficients.rows; ++k) {
      const double score = intercepts[k] + dot(x.row(r), coefficients.row(k));
      if (score > best) best = score, classes[r] = k;
    }
  }
  return classes;
}

LogisticModel fit_logistic(const Matrix& x, std::span<const size_t> labels, size_t classes,
                           const LogisticOptions& options) {
  base::require(x.rows == labels.size() && x.rows > 0 && classes > 0 && options.strength > 0, "probe",
                "{} rows for {} labels of {} classes", x.rows, labels.size(), classes);
  constexpr size_t kKept = 10;
  const LogisticLoss loss = {x, labels, classes, 1 / (options.strength * static_cast<double>(x.rows))};
  Vector w(classes * (x.columns + 1)), gradient(w.size()), next_gradient(w.size());
  double value = loss(w, gradient);
  std::deque<Update> updates;
  LogisticModel model;
  for (; model.iterations < options.most_iterations; ++model.iterations) {
    if (!std::isfinite(value)) throw base::UserError("probe", "the features are too large: the loss is not finite");
    if (largest(gradient) < options.tolerance) break;
    Vector direction = direction_of(gradient, updates);
    double slope = dot(direction, gradient);
    if (slope >= 0) {
      updates.clear();
      direction = direction_of(gradient, updates);
      slope = dot(direction, gradient);
    }
    double step = updates.empty() ? std::min(1.0, 1 / largest(gradient)) : 1.0, next_value = 0;
    Vector next(w.size());
    bool falls = false;
    for (int halvings = 0; halvings < 50 && !falls; ++halvings) {
      for (size_t i = 0; i < w.size(); ++i) next[i] = w[i] + step * direction[i];
      next_value = loss(next, next_gradient);
      falls = next_value <= value + 1e-4 * step * slope;
      if (!falls) step /= 2;
    }
    if (!falls) break;  // rounding: no smaller value is found
    Update update = {Vector(w.size()), Vector(w.size()), 0};
    for (size_t i = 0; i < w.size(); ++i) {
      update.step[i] = next[i] - w[i];
      update.change[i] = next_gradient[i] - gradient[i];
    }
    update.product = dot(update.step, update.change);
    if (update.product > 1e-300) updates.push_back(std::move(update));
    if (updates.size() > kKept) updates.pop_front();
    w = std::move(next);
    std::swap(gradient, next_gradient);
    value = next_value;
  }
  model.gradient = largest(gradient);
  model.coefficients = Matrix(classes, x.columns);
  for (size_t k = 0; k < classes; ++k) {
    const auto row = w.begin() + static_cast<std::ptrdiff_t>(k * (x.columns + 1));
    std::copy_n(row, x.columns, model.coefficients.values.begin() + static_cast<std::ptrdiff_t>(k * x.columns));
    model.intercepts.push_back(row[static_cast<std::ptrdiff_t>(x.columns)]);
  }
  return model;
}

double accuracy(std::span<const size_t> predicted, std::span<const size_t> labels) {
  size_t right = 0;
  for (size_t i = 0; i < labels.size(); ++i) right += predicted[i] == labels[i] ? 1 : 0;
  return static_cast<double>(right) / static_cast<double>(labels.size());
}

}  // namespace kintsugi::probe
