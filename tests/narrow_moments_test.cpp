// AdamW with moments in 8-bit codes and in bf16: in layouts that split weights, where blocks are whole and where they
// are cut; rounding that keeps the mean and does not depend on the layout; memory.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/compile/programs.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/kernels/stochastic.h"
#include "kintsugi/models/step.h"
#include "kintsugi/tensor/state_blocks.h"
#include "tests/layouts.h"

namespace kintsugi::tests::narrow_moments_test {
namespace {

constexpr double kRate = 0.01, kDecay = 0.1, kBeta1 = 0.8, kBeta2 = 0.9, kEpsilon = 1e-6;

// "adamw8", "adamw16:mixtral", "adamw8:wide": feed-forward layers of which tensor splits keep blocks whole.
config::Settings model_of(const std::string& model, const std::string& dtype) {
  const size_t colon = model.find(':');
  const std::string family = colon == model.npos ? "llama" : model.substr(colon + 1);
  config::Settings s = small_model(family == "wide" ? "llama" : family, dtype);
  if (family == "wide") s.model.embed = 32, s.model.ffn = 512;
  if (family == "mixtral") s.model.experts = 4, s.model.experts_per_token = 2, s.train.balance = "loss";
  s.train.optimizer = model.substr(0, colon);
  s.train.betas = {kBeta1, kBeta2};
  s.train.epsilon = kEpsilon;
  s.train.weight_decay = kDecay;
  s.train.clip = 0;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  return s;
}

void same_as_one_rank(const std::string& model, const std::string& layout) {
  SCOPED_TRACE(model + " in " + layout);
  const Record found = run_layout(model_of, {model, layout}, "fp64", 4);
  const Record& want = twin(model_of, model, "fp64", 4);
  EXPECT_EQ(difference(found, want, 1e-9), "");
  for (const auto& [name, w] : want.weights)
    for (size_t i = 0; i < w.size(); ++i) ASSERT_NEAR(found.weights.at(name)[i], w[i], 1e-9) << name << " " << i;
}

program::Program lowered(config::Settings s, const std::string& layout) {
  set_layout(s, layout);
  s.train.micro_batch = s.train.global_batch / s.parallel.data;
  const auto kernels = compile::kernels_of(s);
  return compile::only_stage(compile::compile({.settings = s, .kernels = *kernels}));
}

}  // namespace

TEST(NarrowMoments, ScalesHaveTheDimsOfTheirWeight) {
  using tensor::Shape;
  EXPECT_EQ(tensor::scales_of({{"embed", 512}, {"ffn", 1024}}), (Shape{{"embed", 512}, {"ffn", 4}}));
  EXPECT_EQ(tensor::scales_of({{"embed", 5}, {"heads", 8}, {"head_dim", 64}}), (Shape{{"embed", 5}, {"heads", 2}}));
  EXPECT_EQ(tensor::scales_of({{"ffn", 512}, {"embed", 24}}), (Shape{{"ffn", 48}}));
  EXPECT_EQ(tensor::scales_of({{"vocab", 65}, {"embed", 24}}), (Shape{{"state_block", 7}}));
}

TEST(NarrowMoments, EightBitsWhereRanksSplitWeights) {
  for (const char* layout : {"tensor=2", "tensor=4", "data=2 tensor=2 zero=1", "data=2 tensor=2 zero=3",
                             "pipe=2 tensor=2", "tensor=2 context=2"})
    same_as_one_rank("adamw8", layout);
  for (const char* layout : {"tensor=2", "data=2 tensor=2 zero=2", "data=2 tensor=2 zero=3 sequence_parallel"})
    same_as_one_rank("adamw8:wide", layout);
  for (const char* layout : {"expert=2", "tensor=2 expert=2", "data=2 expert=2 zero=3"})
    same_as_one_rank("adamw8:mixtral", layout);
}

// The copy of the weights in bf16, by the kernels of the processor.
TEST(NarrowMoments, EightBitsOfSplitWeightsInBf16) {
  const auto model = [](const std::string& name, const std::string&) {
    config::Settings s = model_of(name, "bf16");
    s.parallel.device = "cpu";
    return s;
  };
  for (const char* layout : {"tensor=2", "data=2 tensor=2 zero=3"}) {
    const Record found = run_layout(model, {"adamw8:wide", layout}, "bf16", 4);
    const Record& want = twin(model, "adamw8:wide", "bf16", 4);
    EXPECT_NEAR(found.losses.back(), want.losses.back(), 0.02) << layout;
    EXPECT_LT(found.losses.back(), found.losses.front());
  }
}

TEST(NarrowMoments, EightBitsInMemory) {
  const program::Program p = lowered(model_of("adamw8:wide", "fp32"), "tensor=2");
  for (const program::StateInfo& s : p.states) {
    if (!s.name.ends_with(".m_scale")) continue;
    const auto is_in = [&](const char* part) { return s.name.find(part) != s.name.npos; };
    const bool whole_blocks = is_in(".ffn.") || is_in(".attention.output.");
    EXPECT_EQ(s.in_bucket, whole_blocks) << s.name;
    const program::StateInfo& codes = *p.state(s.name.substr(0, s.name.size() - std::string("_scale").size()));
    const int64_t local = p.buffer(codes.buffer).bytes(), scales = p.buffer(s.buffer).bytes();
    EXPECT_EQ(scales, whole_blocks ? local / 256 * 4 : (codes.whole.shape.elements() + 255) / 256 * 4) << s.name;
  }
}

TEST(NarrowMoments, RoundingKeepsTheMean) {
  for (const float x : {1.0f, -1.00123f, 3.14159e-30f, -2.71828e20f, 0.0f}) {
    double sum = 0;
    for (uint32_t r = 0; r < 0x10000u; ++r)
      sum += std::bit_cast<float>(static_cast<uint32_t>(kernels::round_stochastically(x, r | 0xABCD0000u)) << 16);
    EXPECT_DOUBLE_EQ(sum / 0x10000, static_cast<double>(x)) << x;
  }
}

// The rule in fp64, with the words of each element: of the seed, the step, the name of its weight and its position.
TEST(NarrowMoments, Bf16FollowsItsRule) {
  const config::Settings s = model_of("adamw16", "fp64");
  Machine machine(s);
  const models::Graphs graphs = models::build_training(s);
  struct Moments {
    std::vector<double> w;
    std::vector<uint16_t> m, v;
  };
  std::map<std::string, Moments> twins;
  for (const auto& [name, w] : machine.states(program::StateKind::weight)) {
    twins[name].w = w;
    twins[name].m.assign(w.size(), 0);
    twins[name].v = twins[name].m;
  }
  const auto number = [](uint16_t bits) {
    return static_cast<double>(std::bit_cast<float>(static_cast<uint32_t>(bits) << 16));
  };
  const auto rounded = [](double x, uint32_t random) {
    return static_cast<uint16_t>((std::bit_cast<uint32_t>(static_cast<float>(x)) + random % 65536) / 65536);
  };
  for (int step = 1; step <= 20; ++step) {
    machine.step(step - 1, kRate);
    const double count = machine.executor.number(models::kLossCount);
    const Numbers gradients = machine.states(program::StateKind::gradient),
                  weights = machine.states(program::StateKind::weight);
    for (const auto& [name, w] : weights) {
      Moments& t = twins.at(name);
      const std::vector<double>& g = gradients.at(name + ".gradient");
      const double decay = (*graphs.states)[graphs.states->find(name)].decay ? kDecay : 0.0;
      uint64_t hash = 0xcbf29ce484222325ull;
      for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ull;
      const auto key = kernels::random_key(1, std::string(reinterpret_cast<const char*>(&hash), sizeof hash));
      for (size_t i = 0; i < w.size(); ++i) {
        const double x = g[i] / count, m = kBeta1 * number(t.m[i]) + (1 - kBeta1) * x,
                     v = kBeta2 * number(t.v[i]) + (1 - kBeta2) * x * x;
        const double u = m / (1 - std::pow(kBeta1, step)) / (std::sqrt(v / (1 - std::pow(kBeta2, step))) + kEpsilon);
        t.w[i] -= kRate * (u + decay * t.w[i]);
        const uint32_t word = kernels::random_word(key, static_cast<uint64_t>(step - 1), i);
        t.m[i] = rounded(m, word);
        t.v[i] = rounded(v, word >> 16);
        ASSERT_NEAR(w[i], t.w[i], 1e-9) << name << " " << i << " step " << step;
        t.w[i] = w[i];
      }
      for (const auto& [suffix, bits] : {std::pair(".m", &t.m), std::pair(".v", &t.v)}) {
        const auto* stored = reinterpret_cast<const uint16_t*>(machine.executor.state(name + suffix).data);
        for (size_t i = 0; i < w.size(); ++i) ASSERT_EQ(stored[i], (*bits)[i]) << name << suffix << " " << i;
      }
    }
  }
}

TEST(NarrowMoments, Bf16InLayouts) {
  for (const char* layout : {"data=2 zero=1", "data=4 zero=3", "tensor=2", "tensor=4", "data=2 tensor=2 zero=3",
                             "pipe=2 data=2 zero=2", "tensor=2 context=2"})
    same_as_one_rank("adamw16", layout);
  for (const char* layout : {"expert=2", "data=2 expert=2 zero=3"}) same_as_one_rank("adamw16:mixtral", layout);
}

TEST(NarrowMoments, Bf16InMemory) {
  const auto bytes = [](const program::Program& p) {
    std::map<program::StateKind, int64_t> sums;
    std::set<program::BufferId> seen;
    for (const program::StateInfo& s : p.states)
      if (seen.insert(p.root(s.buffer)).second) sums[s.kind] += p.buffer(p.root(s.buffer)).bytes();
    return sums;
  };
  for (const char* layout : {"data=1", "tensor=2"}) {
    auto sums = bytes(lowered(model_of("adamw16", "fp32"), layout));
    EXPECT_EQ(sums[program::StateKind::optimizer], sums[program::StateKind::weight]) << layout;  // 2 + 2 bytes and 4
  }
}

TEST(NarrowMoments, FastKernelFollowsTheSlow) {
  config::Settings slow = model_of("adamw16", "fp32"), fast = slow;
  fast.parallel.device = "cpu";
  fast.parallel.threads = 2;
  Machine a(slow), b(fast);
  const Numbers before = a.states(program::StateKind::weight);
  for (int step = 0; step < 3; ++step) a.step(step, kRate), b.step(step, kRate);
  const Numbers want = a.states(program::StateKind::weight), got = b.states(program::StateKind::weight);
  double far = 0, moved = 0;
  for (const auto& [weight, w] : want)
    for (size_t i = 0; i < w.size(); ++i) {
      far += std::pow(got.at(weight)[i] - w[i], 2);
      moved += std::pow(w[i] - before.at(weight)[i], 2);
    }
  EXPECT_LT(std::sqrt(far / moved), 2e-3);
}

}  // namespace kintsugi::tests::narrow_moments_test
