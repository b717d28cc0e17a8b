// Programs with fused epilogues compute the same bits as without, in no more memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>

#include "kintsugi/compile/programs.h"
#include "kintsugi/program/program.h"
#include "tests/small_model.h"

namespace kintsugi::tests::epilogues_test {
namespace {

struct Case {
  std::string family, activation, dtype, device;
  int64_t values = 0, slopes = 0;  // that no product makes the operand of: behind a rename, or dropout
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.activation << " " << c.dtype << " " << c.device;
}

config::Settings settings_of(const Case& c) {
  config::Settings s = small_model(c.family, c.dtype);
  s.model.activation = c.activation;
  s.parallel.device = c.device;
  s.parallel.threads = c.device == "cpu" ? 2 : 1;
  return s;
}

// Matmuls with that epilogue, and separate operations of that kind.
struct Counts {
  int64_t joined = 0, alone = 0;
};
Counts count(const program::Program& p, const std::string& kind) {
  Counts counts;
  for (const program::Body& body : p.bodies)
    for (const program::Instruction& i : body.instructions) {
      counts.joined += i.attributes.text_or("epilogue", "") == kind;
      counts.alone += i.kernel == kind;
    }
  return counts;
}

class Epilogues : public testing::TestWithParam<Case> {};

TEST_P(Epilogues, HaveTheBitsOfTwoOperations) {
  const config::Settings s = settings_of(GetParam());
  Machine joined(s), alone(s, kernels::without_epilogues(compile::kernels_of(s)));
  for (int64_t step = 0; step < 3; ++step) EXPECT_EQ(joined.step(step, 1e-2), alone.step(step, 1e-2));
  for (const program::StateKind kind :
       {program::StateKind::weight, program::StateKind::gradient, program::StateKind::optimizer})
    EXPECT_EQ(joined.states(kind) == alone.states(kind), true);
}

TEST_P(Epilogues, TakeNoMoreMemory) {
  const config::Settings s = settings_of(GetParam());
  const auto with = compile::kernels_of(s), without = kernels::without_epilogues(compile::kernels_of(s));
  const program::Program joined = compile::only_stage(compile::compile({.settings = s, .kernels = *with})),
                         alone = compile::only_stage(compile::compile({.settings = s, .kernels = *without}));
  EXPECT_LE(joined.bytes(), alone.bytes());
  EXPECT_EQ(joined.flops(program::Step::train), alone.flops(program::Step::train));
  const std::string kind = s.model.activation == "gelu_tanh" ? "gelu" : s.model.activation;
  for (const auto& [of, stay] : {std::pair(kind, GetParam().values), std::pair(kind + "_grad", GetParam().slopes)}) {
    const Counts now = count(joined, of), before = count(alone, of);
    EXPECT_GT(before.alone, 0) << of;
    EXPECT_EQ(before.joined, 0) << of;
    EXPECT_EQ(now.alone, stay) << of;
    EXPECT_EQ(now.joined, before.alone - stay) << of;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, Epilogues,
    testing::Values(Case{"gpt", "gelu_tanh", "fp64", "reference"}, Case{"gpt", "gelu_tanh", "bf16", "reference"},
                    Case{"gpt", "gelu_tanh", "fp32", "cpu"}, Case{"gpt", "gelu_tanh", "bf16", "cpu"},
                    Case{"gpt", "gelu_tanh", "fp16", "cpu"}, Case{"gpt", "gelu", "bf16", "cpu"},
                    Case{"bert", "gelu", "fp32", "cpu", 3, 2}, Case{"gpt", "silu", "bf16", "cpu"},
                    Case{"gpt", "relu2", "bf16", "cpu"}, Case{"mlp", "relu", "fp32", "cpu", 0, 4}));

}  // namespace
}  // namespace kintsugi::tests::epilogues_test
