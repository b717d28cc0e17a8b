// Each optimizer compared with its published rule, written out here: 20 steps of a small model in fp64.
#include "kintsugi/models/optimizers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/models/step.h"
#include "tests/layouts.h"

namespace kintsugi::tests::optimizers_test {
namespace {

constexpr double kRate = 0.01, kDecay = 0.1, kBeta1 = 0.8, kBeta2 = 0.9, kEpsilon = 1e-6, kMomentum = 0.7, kRho = 0.85;

// An element, and its optimizer state.
struct Element {
  double w = 0, m = 0, v = 0;
};
// The update with the gradient g, in step t from 1.
using Rule = std::function<void(Element& e, double g, double decay, int t)>;

void adam(Element& e, double g, int t) {
  e.m = kBeta1 * e.m + (1 - kBeta1) * g;
  e.v = kBeta2 * e.v + (1 - kBeta2) * g * g;
  const double m = e.m / (1 - std::pow(kBeta1, t)), v = e.v / (1 - std::pow(kBeta2, t));
  e.w -= kRate * m / (std::sqrt(v) + kEpsilon);
}

Rule rule_of(std::string_view name) {
  if (name == "adamw")
    return [](Element& e, double g, double decay, int t) {
      const double old = e.w;
      adam(e, g, t);
      e.w -= kRate * decay * old;
    };
  if (name == "adam") return [](Element& e, double g, double decay, int t) { adam(e, g + decay * e.w, t); };
  if (name == "lion")
    return [](Element& e, double g, double decay, int) {
      const double c = kBeta1 * e.m + (1 - kBeta1) * g;
      e.w -= kRate * ((c > 0 ? 1 : c < 0 ? -1 : 0) + decay * e.w);
      e.m = kBeta2 * e.m + (1 - kBeta2) * g;
    };
  if (name == "sgd")
    return [](Element& e, double g, double decay, int) {
      e.m = kMomentum * e.m + g + decay * e.w;
      e.w -= kRate * e.m;
    };
  // In the two-position form, y is the look-ahead position, where the gradient is taken. With w for y: v' = mu v - rate
  // g, w' = w + mu v' - rate g (Sutskever et al. 2013, equations 3 and 4, shifted by mu v).
  if (name == "nesterov")
    return [](Element& e, double g, double decay, int) {
      const double gradient = g + decay * e.w;
      e.v = kMomentum * e.v - kRate * gradient;
      e.w += kMomentum * e.v - kRate * gradient;
    };
  // Zeiler 2012, algorithm 1, with L2 decay and the learning rate as factor.
  if (name == "adadelta")
    return [](Element& e, double g, double decay, int) {
      const double gradient = g + decay * e.w;
      e.v = kRho * e.v + (1 - kRho) * gradient * gradient;
      const double step = std::sqrt(e.m + kEpsilon) / std::sqrt(e.v + kEpsilon) * gradient;
      e.m = kRho * e.m + (1 - kRho) * step * step;
      e.w -= kRate * step;
    };
  return nullptr;  // whole_optimizers_test.cpp and narrow_moments_test.cpp have those that need more than an element
}

}  // namespace

TEST(Optimizers, FollowTheirPublishedRules) {
  for (const models::Optimizer& optimizer : models::optimizers()) {
    SCOPED_TRACE(optimizer.config.name);
    const Rule rule = rule_of(optimizer.config.name);
    const std::set<std::string_view> elsewhere = {"lamb", "lars", "muon", "adafactor", "adamw8", "adamw16"};
    EXPECT_EQ(rule == nullptr, elsewhere.contains(optimizer.config.name));
    if (!rule) continue;
    config::Settings s = small_model("llama", "fp64");
    s.train.optimizer = optimizer.config.name;
    s.train.betas = {kBeta1, kBeta2};
    s.train.epsilon = kEpsilon;
    s.train.momentum = kMomentum;
    s.train.weight_decay = kDecay;
    s.train.clip = 0;
    s.train.rho = kRho;
    Machine machine(s);
    std::map<std::string, std::vector<Element>> twin;
    std::map<std::string, bool> decays;
    const models::Graphs graphs = models::build_training(s);
    for (const graph::State& state : *graphs.states)
      if (state.kind == graph::StateKind::weight) decays[state.name] = state.decay;
    for (const auto& [name, w] : machine.states(program::StateKind::weight))
      for (const double x : w) twin[name].push_back({.w = x});
    for (int step = 0; step < 20; ++step) {
      machine.step(step, kRate);
      const double count = machine.executor.number(models::kLossCount);
      const Numbers gradients = machine.states(program::StateKind::gradient),
                    weights = machine.states(program::StateKind::weight);
      ASSERT_EQ(gradients.size(), weights.size());
      for (const auto& [name, w] : weights) {
        const std::vector<double>& g = gradients.at(name + ".gradient");
        std::vector<Element>& elements = twin.at(name);
        for (size_t i = 0; i < w.size(); ++i) {
          rule(elements[i], g[i] / count, decays.at(name) ? kDecay : 0.0, step + 1);
          ASSERT_NEAR(w[i], elements[i].w, 1e-9) << name << " " << i << " in step " << step;
          elements[i].w = w[i];  // so that a sign at zero does not part the two for good
        }
      }
    }
  }
}

}  // namespace kintsugi::tests::optimizers_test
