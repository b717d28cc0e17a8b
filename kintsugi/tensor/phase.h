// The phases of a training step.
#pragma once

#include <cstdint>
#include <string_view>

namespace kintsugi::tensor {

// weight: the part of the backward pass that computes only weight gradients, if it is separate.
enum class Phase : uint8_t { forward, backward, weight, update };

constexpr std::string_view name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::weight:
      return "weight";
    case Phase::update:
      return "update";
  }
  return "";
}

}  // namespace kintsugi::tensor
