// An optimizer with its own state and a frozen weight: the row, its operation and its kernel are in this file. A step
// is lowered for one rank and for several, and run on threads.
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/models/step.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/train/batches.h"
#include "tests/layouts.h"
#include "tests/weights_of_a_step.h"

namespace kintsugi::tests::seams_optimizer_test {
namespace {

using graph::OpRow;
using graph::OutTypes;
using graph::StateId;
using graph::StateKind;
using graph::Types;
using kernels::Kernel;
using kernels::KernelCall;
using tensor::Attributes;
using tensor::OperandList;
using tensor::optional;

// Counts signs of the gradient: n += sign(g), w -= rate (pull n + decay w).
constexpr OperandList kIns = {"w", "g", "n", "factor", "finite"}, kOuts = {"w", "n", optional("weight")};
enum : size_t { kW, kG, kN };
enum : size_t { kNewW, kNewN };
constexpr double kPull = 0.5, kRate = 0.1;

const graph::OpTable& table() {
  static const graph::OpTable all = [] {
    std::vector<OpRow> rows = ops::operations().rows();
    rows.push_back({.kind = "counted_signs",
                    .ins = kIns,
                    .outs = kOuts,
                    .family = "optimizer",
                    .infer = [](Types ins, const Attributes&) -> OutTypes {
                      return {ins["w"], ins["n"]};
                    },
                    .flat = true,
                    .keeps_zero = true,
                    .in_place = {{"w", "w"}, {"n", "n"}}});
    return graph::OpTable(std::move(rows));
  }();
  return all;
}

const models::Optimizer kCountedSigns = {.config = {.name = "counted_signs", .about = "of this file"},
                                         .operation = "counted_signs",
                                         .states = {{.operand = "n", .suffix = ".n"}},
                                         .attributes = [](const config::Train&) {
                                           return Attributes{{"pull", kPull}};
                                         }};

void counted_signs(const KernelCall& call) {
  const std::span<float> w = call.ins[kW].as<float>(), g = call.ins[kG].as<float>(), n = call.ins[kN].as<float>(),
                         new_w = call.outs[kNewW].as<float>(), new_n = call.outs[kNewN].as<float>();
  const auto pull = static_cast<float>(call.attributes.number("pull")),
             decay = static_cast<float>(call.attributes.number("weight_decay")),
             rate = static_cast<float>(call.numbers.learning_rate);
  for (size_t i = 0; i < w.size(); ++i) {
    const float sign = g[i] > 0 ? 1.0f : g[i] < 0 ? -1.0f : 0.0f;
    const float count = n[i] + sign, old = w[i];
    new_n[i] = count;
    new_w[i] = old - rate * (pull * count + decay * old);
  }
}

class WithCountedSigns : public kernels::KernelSet {
 public:
  explicit WithCountedSigns(std::unique_ptr<KernelSet> others) : others_(std::move(others)) {}
  std::string_view name() const override { return others_->name(); }
  const Kernel& find(std::string_view kind) const override {
    static const Kernel own = {"counted_signs", kIns, kOuts, counted_signs};
    return own.kind == kind ? own : others_->find(kind);
  }

 private:
  std::unique_ptr<KernelSet> others_;
};

config::Settings settings() {
  config::Settings s = small_model("llama", "fp32");
  s.model.dropout = 0;
  s.train.global_batch = s.train.micro_batch = 4;
  s.train.freeze = {"embedding", "layer0.attention", "layer*.ffn.up.weight", "head.table", "*_norm"};
  return s;
}

// `parallel`: as in tests/layouts.h.
std::vector<program::Program> programs_of(config::Settings s, const std::string& parallel,
                                          const kernels::KernelSet& kernels) {
  set_layout(s, parallel);
  s.train.micro_batch = s.train.global_batch / s.parallel.data;
  const models::Graphs graphs = models::build_training(s, kCountedSigns, table());
  return compile::compile({.settings = s, .kernels = kernels, .graphs = &graphs});
}

bool is_frozen(const std::string& name) {
  return name.starts_with("embedding.") || name.starts_with("layer0.attention.") || name.ends_with("ffn.up.weight") ||
         name == "head.table" || name.find("_norm.") != name.npos;
}

}  // namespace

TEST(SeamsOptimizer, ARowAndFrozenWeightsTrainInEveryLayout) {
  const WithCountedSigns kernels(kernels::reference_kernels());
  std::pair<States, States> one;
  for (const std::string parallel : {"", "data=2", "data=2 zero=3", "data=4 zero=1", "tensor=2"}) {
    SCOPED_TRACE(parallel);
    config::Settings s = settings();
    const std::vector<program::Program> programs = programs_of(s, parallel, kernels);
    ASSERT_EQ(programs.size(), 1u);
    const auto states = weights_of_a_step(programs[0], kernels, [&](const run::Executor::Inputs& inputs) {
      samples::BatchMemory batch;
      draw_batch(s, 0, inputs.micro_batch(), batch);
      evaluate::set_inputs(inputs, batch.view(), 0);
    });
    size_t frozen = 0, trained = 0;
    for (const auto& [name, before] : states.first) {
      const std::vector<double>& after = states.second.at(name);
      const bool decays = name.ends_with(".weight");
      is_frozen(name) ? ++frozen : ++trained;
      for (size_t i = 0; i < before.size(); ++i) {
        if (is_frozen(name)) {
          ASSERT_EQ(after[i], before[i]) << name;
          continue;
        }
        // The first count is the sign of the gradient.
        const double kept = before[i] * (decays ? 1 - kRate * s.train.weight_decay : 1.0);
        ASSERT_NEAR(std::abs(after[i] - kept), kRate * kPull, 1e-6) << name << " " << i;
      }
    }
    EXPECT_GT(frozen, 5u);
    EXPECT_GT(trained, 5u);
    if (parallel.empty()) one = states;
    for (const auto& [name, after] : one.second)
      for (size_t i = 0; i < after.size(); ++i) ASSERT_NEAR(states.second.at(name)[i], after[i], 1e-6) << name;
  }
}

TEST(SeamsOptimizer, FrozenWeightsHaveNothingBesides) {
  const WithCountedSigns kernels(kernels::reference_kernels());
  config::Settings s = settings(), all = settings();
  all.train.freeze.clear();
  const auto frozen = programs_of(s, "", kernels), free = programs_of(all, "", kernels);
  size_t extra = 0;
  for (const program::StateInfo& state : frozen[0].states) {
    const std::string& of = state.kind == StateKind::weight ? state.name : state.weight;
    if (of.empty() || state.kind == StateKind::weight) continue;
    EXPECT_FALSE(is_frozen(of)) << state.name;
    ++extra;
  }
  EXPECT_GT(extra, 10u);  // gradients and counts
  EXPECT_LT(frozen[0].state_bytes, free[0].state_bytes);
  EXPECT_LT(frozen[0].flops(program::Step::train), free[0].flops(program::Step::train));
  // Nothing is differentiated below the first trained weight, and a frozen head's table has no gradient.
  for (const program::Body& body : frozen[0].bodies)
    for (const program::Instruction& i : body.instructions) {
      EXPECT_NE(i.kernel, "embedding_grad");
      const bool of_frozen = i.kernel == "head_with_grad" || i.kernel == "rms_norm_grad";
      EXPECT_TRUE(!of_frozen || i.absent.outs != 0) << i.kernel;
      EXPECT_FALSE(i.kernel == "attention_grad" && i.layer == 0);
    }
}

}  // namespace kintsugi::tests::seams_optimizer_test
