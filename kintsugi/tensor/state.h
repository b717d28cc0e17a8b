// What a state is: what outlives a step. Shared by graphs and programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace kintsugi::tensor {

// weight: a parameter of the model. gradient: its accumulator. level: a sum of some micro-batches' gradients that
// waits for another of its level, when sums are added in one tree. optimizer: see OptimizerPart. statistic: a number
// of the run. cache: keys and values of earlier tokens.
enum class StateKind : uint8_t { weight, gradient, level, optimizer, statistic, cache };
constexpr StateKind kStateKinds[] = {StateKind::weight,    StateKind::gradient,  StateKind::level,
                                     StateKind::optimizer, StateKind::statistic, StateKind::cache};
std::string_view name_of(StateKind kind);

// The relation of an optimizer's state to its weight: the weight itself in fp32, if it is stored in less, a moving mean
// of the gradient (the momentum) or of its square, or another state that only its optimizer knows.
enum class OptimizerPart : uint8_t { none, master, first_moment, second_moment, other };

// The initial value of a state: a constant, or normal numbers of mean 0 keyed by (seed, name, index).
struct Init {
  enum class Kind : uint8_t { constant, normal };
  Kind kind = Kind::constant;
  double value = 0.0;  // the constant, or the standard deviation

  bool operator==(const Init&) const = default;
};

}  // namespace kintsugi::tensor
