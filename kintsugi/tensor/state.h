// Kinds of state, shared by graphs and programs. A state persists from step to step.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::tensor {

// weight: a parameter of the model. gradient: its accumulator. level: when sums are added in a binary tree, a sum of
// some micro-batches' gradients that waits for another of its level. optimizer: see OptimizerPart. statistic: a scalar
// of the run. cache: keys and values of earlier tokens.
enum class StateKind : uint8_t { weight, gradient, level, optimizer, statistic, cache };
constexpr StateKind kStateKinds[] = {StateKind::weight,    StateKind::gradient,  StateKind::level,
                                     StateKind::optimizer, StateKind::statistic, StateKind::cache};
std::string_view name_of(StateKind kind);

// The relation of an optimizer state to its weight: an fp32 copy of a low-precision weight, a moving mean of the
// gradient (momentum) or of its square, another state that only its optimizer knows, or the moving average of the
// weight itself.
enum class OptimizerPart : uint8_t { none, master, first_moment, second_moment, other, average };

// The initial value of a state: a constant, or normally distributed numbers of mean 0 keyed by (seed, name, index).
struct Init {
  enum class Kind : uint8_t { constant, normal };
  Kind kind = Kind::constant;
  double value = 0.0;  // the constant, or the standard deviation

  bool operator==(const Init&) const = default;
};

}  // namespace kintsugi::tensor
