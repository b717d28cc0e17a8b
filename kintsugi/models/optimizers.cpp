#include "kintsugi/models/optimizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"

namespace kintsugi::models {
namespace {

using config::Train;
using graph::OptimizerPart;
using tensor::Attributes;

constexpr OptimizerState kFirstMoment = {"m", ".m", OptimizerPart::first_moment},
                         kSecondMoment = {"v", ".v", OptimizerPart::second_moment};

Attributes moments(const Train& train) {
  return {{"beta1", train.betas[0]}, {"beta2", train.betas[1]}, {"epsilon", train.epsilon}};
}

double reach_of_moments(const Train& train, int64_t updates) {
  return adamw_reach(train.betas[0], train.betas[1], updates);
}

Optimizer adamw() {
  return {.config = {.name = "adamw",
                     .about = "moments of the gradient, weight decay apart (Loshchilov, Hutter 2019)",
                     .keys = {"train.betas", "train.epsilon"}},
          .operation = "adamw",
          .states = {kFirstMoment, kSecondMoment},
          .attributes = moments,
          .reach = reach_of_moments};
}

// Adds the decay to the gradient.
Optimizer adam() {
  Optimizer adam = adamw();
  adam.config.name = "adam";
  adam.config.about = "AdamW with the weight decay as part of the gradient (Kingma, Ba 2015)";
  adam.attributes = [](const Train& train) {
    Attributes attributes = moments(train);
    attributes.set("coupled_decay", int64_t{1});
    return attributes;
  };
  return adam;
}

Optimizer lion() {
  return {.config = {.name = "lion",
                     .about = "the sign of a mean of gradients (Chen et al. 2023); not yet on devices",
                     .keys = {"train.betas"}},
          .operation = "lion",
          .states = {kFirstMoment},
          .attributes =
              [](const Train& train) {
                return Attributes{{"beta1", train.betas[0]}, {"beta2", train.betas[1]}};
              },
          .reach = [](const Train&, int64_t) { return 1.0; }};
}

Optimizer sgd() {
  return {.config = {.name = "sgd",
                     .about = "gradient descent with momentum (Sutskever et al. 2013, section 2)",
                     .keys = {"train.momentum"}},
          .operation = "sgd",
          .states = {kFirstMoment},
          .attributes = [](const Train& train) {
            return Attributes{{"momentum", train.momentum}};
          }};
}

Optimizer nesterov() {
  Optimizer nesterov = sgd();
  nesterov.config.name = "nesterov";
  nesterov.config.about = "sgd with look-ahead (Nesterov 1983; Sutskever et al. 2013, section 2)";
  nesterov.attributes = [](const Train& train) {
    return Attributes{{"momentum", train.momentum}, {"nesterov", int64_t{1}}};
  };
  return nesterov;
}

}  // namespace

std::span<const Optimizer> optimizers() {
  static const std::vector<Optimizer> rows = {adamw(), adam(), lion(), sgd(), nesterov()};
  return rows;
}

const Optimizer& optimizer(std::string_view name, std::span<const Optimizer> rows) {
  std::vector<std::string_view> names;
  for (const Optimizer& row : rows) {
    if (row.config.name == name) return row;
    names.push_back(row.config.name);
  }
  throw base::UserError("model", "no optimizer \"{}\"; there are {}", name, fmt::join(names, ", "));
}

double adamw_reach(double beta1, double beta2, int64_t step) {
  double reach = 0;
  for (int64_t t = 1; t <= step; ++t) {
    // m = sum a_j g_j, v = sum b_j g_j^2, and |m| <= sqrt(sum a_j^2 / b_j) sqrt(v).
    const double a = (1 - beta1) / (1 - std::pow(beta1, t)), b = (1 - beta2) / (1 - std::pow(beta2, t));
    double sum = 0;
    for (int64_t j = 0; j < t; ++j) sum += std::pow(beta1 * beta1 / beta2, j);
    reach = std::max(reach, std::sqrt(a * a / b * sum));
  }
  return reach;
}

}  // namespace kintsugi::models
