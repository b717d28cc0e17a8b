// Layouts that add in the same order agree bit for bit.
#include <gtest/gtest.h>

#include <tuple>

#include "tests/layouts.h"

namespace kintsugi::tests::bits_test {
namespace {

struct Bits {
  std::vector<double> losses;
  Numbers weights, optimizer;

  bool operator==(const Bits&) const = default;
};

config::Settings model_of(const std::string& family, const std::string& dtype, int64_t micro_batches) {
  config::Settings s = small_model(family, dtype);
  s.parallel.device = "cpu";
  s.train.micro_batch = 4;
  s.train.global_batch = 4 * micro_batches;
  return s;
}

config::Settings in_layout(config::Settings s, const std::string& parallel) {
  set_layout(s, parallel);
  s.train.micro_batch /= s.parallel.data;
  return s;
}

Bits run(const config::Settings& s, const std::string& parallel, int64_t steps = 3) {
  train::LayoutRun run(in_layout(s, parallel));
  Bits bits;
  for (int64_t i = 0; i < steps; ++i) {
    run.step(i, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, i, m, batch); });
    bits.losses.push_back(run.loss());
  }
  bits.weights = run.states(program::StateKind::weight);
  bits.optimizer = run.states(program::StateKind::optimizer);
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

// Eight units of two samples: one reduction tree, regardless of which rank computes them.
TEST(BitsOfUnits, EveryNumberOfDataRanksAndEveryStage) {
  for (const char* family : {"gpt", "llama"})
    for (const std::string gradients : {"fp32", "bf16 in fp32", "bf16"}) {
      const std::string dtype = gradients.substr(0, 4);
      config::Settings s = small_model(family, dtype);
      s.train.gradient_dtype = gradients == "bf16" ? "bf16" : "fp32";
      s.parallel.device = "cpu";
      s.train.reproducible = 8;
      s.train.global_batch = 16;
      const auto bits = [&](const std::string& parallel) {
        config::Settings t = s;
        set_layout(t, parallel);
        t.train.micro_batch = 2;  // of each rank
        train::LayoutRun run(t);
        Bits b;
        for (int64_t i = 0; i < 3; ++i) {
          run.step(i, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(t, i, m, batch); });
          b.losses.push_back(run.loss());
        }
        b.weights = run.states(program::StateKind::weight);
        b.optimizer = run.states(program::StateKind::optimizer);
        return b;
      };
      const Bits one = bits("");
      for (const char* data : {"data=2", "data=4", "data=8"})
        for (const char* zero : {"", " zero=1", " zero=2", " zero=3"})
          EXPECT_EQ(bits(std::string(data) + zero) == one, true) << family << " " << gradients << " " << data << zero;
      if (std::string(family) != "llama") continue;  // a tied weight adds up on each of its stages
      for (const char* staged : {"pipe=2", "pipe=2 schedule=gpipe", "pipe=2 data=2 zero=1 schedule=zero_bubble",
                                 "pipe=2 data=4 zero=3", "pipe=2 data=2 zero=2 recompute=full"})
        EXPECT_EQ(bits(staged) == one, true) << family << " " << gradients << " " << staged;
    }
}

// Bytes of the collectives of a step.
double sent(const program::Program& p) {
  double bytes = 0;
  for (const program::Call& call : p.list(program::Step::train).calls)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions)
      if (i.kind == program::Kind::collective) bytes += i.cost.wire_bytes;
  return bytes;
}

// Gradients communicated in bf16 are close to fp32 and have equal bits on every rank. Nothing is fused across a stage
// boundary that is not fused within a stage: wherever a block has its norms, with and without biases, gradients between
// stages are rounded like those between layers.
TEST(BitsOfStages, ACutBetweenLayersChangesNone) {
  for (const std::string device : {"cpu", "emulated"})
    for (const std::string place : {"before", "after", "output", "both"})
      for (const bool bias : {true, false})
        for (const std::string mesh : {"", " tensor=2"}) {
          if (device == "emulated" && !mesh.empty() && bias) continue;  // it is slow
          config::Settings s = model_of("gpt", "bf16", 2);
          s.model.norm_place = place;
          s.model.tied = false;  // on two stages its gradients are added up in another order
          s.model.bias_query_key_value = s.model.bias_output = s.model.bias_ffn = bias;
          s.parallel.device = device;
          const Bits whole = run(s, mesh, 2);
          for (const char* schedule : {"1f1b", "zero_bubble"})
            EXPECT_EQ(run(s, "pipe=2 schedule=" + std::string(schedule) + mesh, 2).weights == whole.weights, true)
                << device << " " << place << " " << bias << mesh << " " << schedule;
        }
}

TEST(Wire, Bf16IsNearAndHalfTheBytes) {
  const config::Settings s = model_of("gpt", "fp32", 2);
  for (const char* parallel : {"data=2", "data=2 zero=2", "data=4 zero=1"}) {
    const config::Settings wide = in_layout(s, parallel);
    config::Settings narrow = wide;
    narrow.parallel.wire = "bf16";
    train::LayoutRun one(wide), other(narrow);
    EXPECT_EQ(difference(record(other, narrow, 1), record(one, wide, 1), 4e-3), "") << parallel;
    EXPECT_LT(sent(other.program()), 0.8 * sent(one.program())) << parallel;
  }
}

// Gradients accumulated in bf16 over passes and ranks are close to but different from fp32, take half the memory, and
// halve the traffic of a step.
TEST(GradientDtype, Bf16IsNearAndHalfTheBytes) {
  const config::Settings s = model_of("gpt", "bf16", 2);
  const auto of = [](const program::Program& p) {
    int64_t bytes = 0;
    for (const program::StateInfo& s : p.states)
      if (s.kind == program::StateKind::gradient && s.first == 0) bytes += p.buffer(s.buffer).bytes();
    return bytes;
  };
  for (const char* parallel : {"", "data=2", "data=2 zero=2", "data=4 zero=1"}) {
    const config::Settings wide = in_layout(s, parallel);
    config::Settings narrow = wide;
    narrow.train.gradient_dtype = "bf16";
    train::LayoutRun one(wide), other(narrow);
    EXPECT_EQ(2 * of(other.program()), of(one.program())) << parallel;
    const Record a = record(other, narrow, 1), b = record(one, wide, 1);
    EXPECT_EQ(difference(a, b, 1e-2), "") << parallel;
    EXPECT_NE(difference(a, b, 1e-5), "") << parallel;
    if (wide.parallel.data > 1) {
      EXPECT_LT(sent(other.program()), 0.8 * sent(one.program())) << parallel;
    }
  }
}

}  // namespace
}  // namespace kintsugi::tests::bits_test
