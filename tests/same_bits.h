// All numbers of a short run, compared bit by bit with another's.
#pragma once

#include <fmt/format.h>

#include <cstring>
#include <string>
#include <vector>

#include "tests/layouts.h"

namespace kintsugi::tests {

struct Bits : Record {
  Numbers optimizer;  // after the last step
  double flops = 0;   // of a step: not compared
};

inline Bits bits_of(const config::Settings& s, int64_t steps) {
  train::LayoutRun run(s);
  return {record(run, s, steps), run.states(program::StateKind::optimizer), run.program().flops(program::Step::train)};
}

inline bool same_bits(const std::vector<double>& a, const std::vector<double>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

// "" if all numbers have equal bits, including signs of zeros; otherwise the name of the first that differs.
inline std::string other_bits(const Bits& a, const Bits& b) {
  if (!same_bits(a.losses, b.losses)) return "loss";
  const auto compare = [](const Numbers& x, const Numbers& y) -> std::string {
    if (x.size() != y.size() || x.empty()) return "other names";
    for (const auto& [name, numbers] : x)
      if (!y.contains(name) || !same_bits(numbers, y.at(name))) return name;
    return "";
  };
  for (size_t i = 0; i < a.gradients.size(); ++i)
    if (const std::string name = compare(a.gradients[i], b.gradients[i]); !name.empty())
      return fmt::format("step {}: {}", i, name);
  const std::string weight = compare(a.weights, b.weights);
  return weight.empty() ? compare(a.optimizer, b.optimizer) : weight;
}

}  // namespace kintsugi::tests
