// Layouts that add in the same order agree bit for bit.
#include <gtest/gtest.h>

#include "tests/layouts.h"

namespace kintsugi::tests {
namespace {

struct Bits {
  std::vector<double> losses;
  Numbers weights, optimizer;

  bool operator==(const Bits&) const = default;
};

config::Settings model_of(const std::string& family, const std::string& dtype, int64_t micro_batches) {
  config::Settings s = small_model(family, dtype);
  s.train.kernels = "cpu";
  s.train.micro_batch = 4;
  s.train.global_batch = 4 * micro_batches;
  return s;
}

Bits run(config::Settings s, const std::string& parallel, int64_t steps = 3) {
  set_layout(s, parallel);
  s.train.micro_batch /= s.parallel.data;
  train::LayoutRun run(s);
  Bits bits;
  for (int64_t i = 0; i < steps; ++i) {
    run.step(i, 1e-2, [&](int64_t m, train::WholeBatch& batch) { draw_batch(s, i, m, batch); });
    bits.losses.push_back(run.loss());
  }
  bits.weights = run.states("weight");
  bits.optimizer = run.states("optimizer");
  return bits;
}

class BitsOfZero : public testing::TestWithParam<std::tuple<std::string, std::string, std::string>> {};

TEST_P(BitsOfZero, EveryStageForOneMicroBatch) {
  const auto& [family, dtype, mesh] = GetParam();
  const config::Settings s = model_of(family, dtype, 1);
  const Bits plain = run(s, mesh);
  for (const char* zero : {" zero=1", " zero=2", " zero=3"})
    EXPECT_EQ(run(s, mesh + zero) == plain, true) << mesh << zero;
}

TEST_P(BitsOfZero, StagesInPairsForSeveral) {
  const auto& [family, dtype, mesh] = GetParam();
  const config::Settings s = model_of(family, dtype, 3);
  EXPECT_EQ(run(s, mesh + " zero=1") == run(s, mesh), true) << mesh;
  EXPECT_EQ(run(s, mesh + " zero=2") == run(s, mesh + " zero=3"), true) << mesh;
}

INSTANTIATE_TEST_SUITE_P(All, BitsOfZero,
                         testing::Combine(testing::Values("gpt", "llama"), testing::Values("fp32", "bf16"),
                                          testing::Values("data=2", "data=4", "data=2 tensor=2")));

}  // namespace
}  // namespace kintsugi::tests
