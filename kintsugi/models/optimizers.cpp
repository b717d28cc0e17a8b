#include "kintsugi/models/optimizers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/models/optimizer_rows.h"

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

// Bounds for weights whose norm is at most 100.
double reach_of_lars(const Train& train, int64_t) {
  return 100 * train.trust_coefficient / (1 - train.momentum);
}
double reach_of_lamb(const Train& train, int64_t updates) {
  return 100 * reach_of_moments(train, updates);
}

// Of an orthogonalized matrix every element is at most its spectral norm, which five steps leave below 1.3, times the
// scale; the largest matrix is not known here.
double reach_of_muon(const Train& train, int64_t updates) {
  constexpr double kLargest = 1.3, kWidest = 1 << 16;
  return std::max(kLargest * (train.muon_scale == "rms" ? 0.2 * std::sqrt(kWidest) : std::sqrt(kWidest)),
                  reach_of_moments(train, updates));
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

constexpr OptimizerState kCodes[] = {{"m", ".m"}, {"v", ".v"}, {"m_scale", ".m_scale"}, {"v_scale", ".v_scale"}};

Optimizer adamw8() {
  return {.config = {.name = "adamw8",
                     .about = "AdamW with moments in 8-bit codes (Dettmers et al. 2022)",
                     .keys = {"train.betas", "train.epsilon"}},
          .operation = "adamw8",
          .states = {std::begin(kCodes), std::end(kCodes)},
          .attributes = moments,
          // Rounding lets a moment exceed its bound.
          .reach = [](const Train& train, int64_t updates) { return 10 * reach_of_moments(train, updates); },
          .otherwise = "adamw"};
}

constexpr OptimizerState kNarrow[] = {{"m", ".m", OptimizerPart::other, OptimizerState::Dims::all, true},
                                      {"v", ".v", OptimizerPart::other, OptimizerState::Dims::all, true}};

Optimizer adamw16() {
  return {.config = {.name = "adamw16",
                     .about = "AdamW with moments in bf16, rounded stochastically",
                     .keys = {"train.betas", "train.epsilon"}},
          .operation = "adamw16",
          .states = {std::begin(kNarrow), std::end(kNarrow)},
          .attributes = moments,
          // Rounding lets a moment exceed its bound.
          .reach = [](const Train& train, int64_t updates) { return 10 * reach_of_moments(train, updates); }};
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
                     .about = "the sign of a mean of gradients (Chen et al. 2023)",
                     .keys = {"train.betas"}},
          .operation = "lion",
          .states = {kFirstMoment},
          .attributes =
              [](const Train& train) {
                return Attributes{{"beta1", train.betas[0]}, {"beta2", train.betas[1]}};
              },
          .reach = [](const Train&, int64_t) { return 1.0; }};
}

Optimizer adadelta() {
  return {.config = {.name = "adadelta",
                     .about = "steps in the units of earlier ones (Zeiler 2012), times the learning rate",
                     .keys = {"train.rho", "train.epsilon"}},
          .operation = "adadelta",
          .states = {kSecondMoment, {"d", ".d"}},
          .attributes =
              [](const Train& train) {
                return Attributes{{"rho", train.rho}, {"epsilon", train.epsilon}};
              },
          // A gradient over the root of its mean square is at most 1 / sqrt(1 - rho), and steps are smaller than 1.
          .reach = [](const Train& train, int64_t) { return 1 / std::sqrt(1 - train.rho); }};
}

// Weights without decay are updated without a ratio, as by the authors' code.
Optimizer lamb() {
  return {.config = {.name = "lamb",
                     .about = "AdamW's step of each weight scaled to its norm (You et al. 2020)",
                     .keys = {"train.betas", "train.epsilon"}},
          .operation = "adam_direction",
          .states = {kFirstMoment, kSecondMoment},
          .attributes =
              [](const Train& train) {
                Attributes attributes = moments(train);
                attributes.set("norms", std::string("decayed"));
                attributes.set("decay_in_direction", int64_t{1});
                return attributes;
              },
          .reach = reach_of_lamb,
          .then = {"apply_direction"}};
}

Optimizer lars() {
  return {.config = {.name = "lars",
                     .about = "sgd with a rate for each weight by its norm (You, Gitman, Ginsburg 2017)",
                     .keys = {"train.momentum", "train.trust_coefficient"}},
          .operation = "lars",
          .states = {kFirstMoment},
          .attributes =
              [](const Train& train) {
                return Attributes{{"momentum", train.momentum},
                                  {"trust", train.trust_coefficient},
                                  {"norms", std::string("decayed")}};
              },
          .reach = reach_of_lars};
}

Optimizer muon() {
  return {.config = {.name = "muon",
                     .about = "orthogonalized momentum of the matrices of layers (Jordan et al. 2024), AdamW for all "
                              "other weights",
                     .keys = {"train.muon_momentum", "train.muon_scale", "train.betas", "train.epsilon"}},
          .operation = "muon_momentum",
          .states = {kFirstMoment},
          .attributes =
              [](const Train& train) {
                return Attributes{
                    {"momentum", train.muon_momentum}, {"muon_scale", train.muon_scale}, {"whole_matrix", int64_t{1}}};
              },
          .reach = reach_of_muon,
          .then = {"orthogonalize", "apply_direction"},
          .otherwise = "adamw"};
}

constexpr std::string_view kAdafactorOfVectors = "adafactor of vectors";

Attributes adafactor_attributes(const Train& train) {
  return {{"factor_decay", train.factor_decay}, {"factor_clip", train.factor_clip}, {"norms", std::string("all")}};
}

Optimizer adafactor() {
  return {.config = {.name = "adafactor",
                     .about = "second moments of a matrix by its rows and columns (Shazeer, Stern 2018)",
                     .keys = {"train.factor_decay", "train.factor_clip"}},
          .operation = "factored_sums",
          .states = {{"r", ".r", OptimizerPart::other, OptimizerState::Dims::rows},
                     {"c", ".c", OptimizerPart::other, OptimizerState::Dims::columns}},
          .attributes = adafactor_attributes,
          .reach = [](const Train& train, int64_t) { return 100 * train.factor_clip; },
          .then = {"factored_moments", "factored_direction", "apply_direction"},
          .otherwise = kAdafactorOfVectors};
}

Optimizer adafactor_of_vectors() {
  return {.config = {.name = kAdafactorOfVectors, .about = ""},
          .operation = "unfactored_direction",
          .states = {kSecondMoment},
          .attributes = adafactor_attributes,
          .then = {"apply_direction"}};
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
  static const std::vector<Optimizer> rows = {adamw(), adamw8(), adamw16(),  adam(), lamb(),     lion(),
                                              muon(),  sgd(),    nesterov(), lars(), adadelta(), adafactor()};
  return rows;
}

const Optimizer& fallback_of(const Optimizer& of) {
  static const Optimizer kVectors = adafactor_of_vectors();
  if (of.otherwise.empty()) return of;
  return of.otherwise == kVectors.config.name ? kVectors : optimizer(of.otherwise);
}

const Optimizer& optimizer(std::string_view name, std::span<const Optimizer> rows) {
  std::vector<std::string_view> names;
  for (const Optimizer& row : rows) {
    if (row.config.name == name) return row;
    names.push_back(row.config.name);
  }
  throw base::UserError("model", "no optimizer \"{}\"; there are {}", name, fmt::join(names, ", "));
}

bool is_scale(const OptimizerState& state) {
  return state.operand.ends_with("_scale");
}

bool has_codes(const Optimizer& optimizer) {
  return std::ranges::any_of(optimizer.states, is_scale);
}

bool has_codes(const Optimizer& optimizer, const OptimizerState& state) {
  const std::string scale = std::string(state.operand) + "_scale";
  return std::ranges::any_of(optimizer.states, [&](const OptimizerState& other) { return other.operand == scale; });
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
