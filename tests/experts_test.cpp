// Experts in every layout give the answer of one rank: losses, every gradient by name, balance and bias; also if all
// tokens use one expert, some experts receive none, and scores are equal.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/models/step.h"
#include "tests/layouts.h"

namespace kintsugi::tests::experts_test {
namespace {

// mixtral: 4 experts, 2 per token, balanced by a loss. Suffixes: "bias", "one" (expert per token), "three" (experts),
// "sigmoid", "drops" (fewer slots than tokens), "both" (bias and loss), "global" (loss by the loads of steps), "zloss".
// deepseek_v3: 8 experts in 4 groups, in the second of two layers; "wide": values are wider than queries. gpt_oss has
// biases and sinks.
config::Settings model_of(const std::string& name, const std::string& dtype) {
  const auto has = [&](std::string_view word) { return name.find(word) != name.npos; };
  config::Settings s = small_model(name.substr(0, name.find('-')), dtype);
  s.model.dropout = 0;
  s.model.experts = has("three") ? 3 : 4;
  s.model.experts_per_token = has("one") ? 1 : 2;
  s.model.ffn = 20;
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.train.balance = "loss";
  s.train.balance_weight = 0.1;
  if (has("bias") || has("sigmoid")) {
    s.model.router_bias = true;
    s.train.balance = "bias";
    s.train.balance_rate = 0.01;
  }
  if (has("sigmoid")) {
    s.model.router_scores = "sigmoid";
    s.model.router_scale = 1.5;
  }
  if (has("both")) {
    s.model.router_bias = true;
    s.train.balance = "both";
  }
  if (has("global")) s.train.balance = "global";
  if (has("zloss")) s.train.z_loss = 0.05;
  if (has("gpt_oss")) s.model.window = 3;
  if (has("deepseek")) {
    config::Model& m = s.model;
    m.kv_heads = m.heads;
    m.head_dim = 6, m.rotary_head_dim = 4, m.value_head_dim = has("wide") ? 12 : 5;
    m.kv_rank = 7, m.query_rank = has("wide") ? 0 : 9;
    m.experts = 8, m.expert_groups = 4, m.groups_per_token = 2;
    m.dense_layers = 1, m.dense_ffn = 28;
    if (!has("both")) s.train.balance = "bias";
  }
  if (has("drops")) {
    s.train.expert_bound = 1.25;
    s.train.expert_overflow = "drop";
  }
  if (has("three")) {
    s.train.global_batch = 12;
    s.train.micro_batch = 6;
  }
  return s;
}

// All routers start with equal scores, so all tokens use the experts with the lowest indices.
void start_with_ties(program::Program& p) {
  for (program::StateInfo& s : p.states)
    if (s.name.ends_with(".router.weight")) s.init = {};
}

struct Found {
  Record record;
  Numbers statistics;
  bool captured = false;
};

Found found_in(const config::Settings& s, bool ties) {
  // Of the last micro-batch; stages would wait for each other's.
  const bool logits = s.parallel.pipe == 1;
  train::LayoutRun run(s, std::nullopt, ties ? start_with_ties : train::LayoutRun::Damage(), comm::thread_worlds,
                       logits ? models::Logits::kept : models::Logits::none);
  Found found = {record(run, s, 3), {}};
  found.captured = run.executor(0).captured(program::Step::train);
  if (logits) found.statistics["logits"] = run.state(models::kLogits);
  found.statistics["tokens"] = run.state(models::kExpertTokens);
  for (int64_t layer = s.model.dense_layers; layer < s.model.layers && s.model.router_bias; ++layer) {
    const std::string name = fmt::format("layer{}.ffn{}", layer, models::kRouterBias);
    found.statistics[name] = run.state(name);
  }
  found.statistics["balance"] = {run.executor(0).number(models::kExpertBalance)};
  if (s.train.balance == "loss" || s.train.balance == "both" || s.train.balance == "global")
    found.statistics["loss"] = {run.executor(0).number(std::string(models::kFurtherLoss) + "balance")};
  if (s.train.z_loss > 0.0)
    found.statistics["z"] = {run.executor(0).number(std::string(models::kFurtherLoss) + "router_z")};
  return found;
}

std::string difference_of(const ModelLayout& layout, bool ties) {
  const config::Settings one = model_of(layout.model, "fp64");
  config::Settings several = one;
  set_layout(several, layout.parallel);
  several.train.micro_batch /= config::data_ranks(several.parallel);
  Found whole = found_in(one, ties);
  const Found split = found_in(several, ties);
  if (several.parallel.pipe > 1) whole.statistics.erase("logits");
  if (std::string d = difference(split.record, whole.record, 1e-9); !d.empty()) return d;
  if (split.statistics.size() != whole.statistics.size()) return "other statistics";
  for (const auto& [name, x] : whole.statistics)
    for (size_t i = 0; i < x.size(); ++i)
      if (std::abs(split.statistics.at(name)[i] - x[i]) > 1e-9 * std::max(std::abs(x[i]), name == "logits" ? 1.0 : 0.0))
        return fmt::format("{}[{}] is {} instead of {}", name, i, split.statistics.at(name)[i], x[i]);
  return "";
}

class ExpertLayouts : public testing::TestWithParam<ModelLayout> {};
class ExpertsOnDevices : public testing::TestWithParam<ModelLayout> {};

// Sets all slots to NaN, then runs the kernel.
void run_on_poisoned_slots(const kernels::KernelCall& call) {
  static const std::unique_ptr<kernels::KernelSet> cpu = kernels::cpu_kernels();
  for (size_t i = 0; i < call.outs.size(); ++i) {
    const tensor::View& y = call.outs[i];
    const auto shares = [&](const tensor::View& x) { return x.data == y.data; };
    if (!y.data || !y.shape().has("slot") || call.accumulates(i) || std::ranges::any_of(call.ins, shares)) continue;
    std::ranges::fill(y.as<float>(), std::numeric_limits<float>::quiet_NaN());
  }
  cpu->find(call.kind).run(call);
}

// The kernels of the processor, of which those that make slots begin with NaN.
class PoisonedSlots : public kernels::KernelSet {
 public:
  PoisonedSlots() : cpu_(kernels::cpu_kernels()) {
    for (const char* kind : {"dispatch", "grouped", "gated", "gated_grad", "clamped_gated", "clamped_gated_grad"}) {
      kernels_.push_back(cpu_->find(kind));
      kernels_.back().run = run_on_poisoned_slots;
    }
  }
  std::string_view name() const override { return cpu_->name(); }
  const kernels::Kernel& find(std::string_view kind) const override {
    const auto found = std::ranges::find(kernels_, kind, &kernels::Kernel::kind);
    return found == kernels_.end() ? cpu_->find(kind) : *found;
  }

 private:
  std::unique_ptr<kernels::KernelSet> cpu_;
  std::vector<kernels::Kernel> kernels_;
};

}  // namespace

TEST_P(ExpertLayouts, EqualOneRank) {
  EXPECT_EQ(difference_of(GetParam(), false), "");
}

INSTANTIATE_TEST_SUITE_P(
    All, ExpertLayouts,
    testing::Values(
        ModelLayout{"mixtral", "expert=2"}, ModelLayout{"mixtral", "expert=4"}, ModelLayout{"mixtral-bias", "expert=2"},
        ModelLayout{"mixtral-sigmoid", "expert=2 data=2"}, ModelLayout{"mixtral-one", "expert=2"},
        ModelLayout{"mixtral-drops", "expert=2"}, ModelLayout{"mixtral", "expert=2 data=2 zero=1"},
        ModelLayout{"mixtral-bias", "expert=2 data=2 zero=2"}, ModelLayout{"mixtral", "expert=2 data=2 zero=3"},
        ModelLayout{"mixtral", "expert=2 zero=3"}, ModelLayout{"mixtral", "expert=2 tensor=2"},
        ModelLayout{"mixtral", "expert=2 tensor=2 sequence_parallel zero=1"},
        ModelLayout{"mixtral-bias", "expert=2 context=2"}, ModelLayout{"mixtral-three", "expert=3"},
        ModelLayout{"mixtral", "context=2"}, ModelLayout{"mixtral-three", "context=2 method=ring"},
        ModelLayout{"mixtral-bias", "expert=2 pipe=2"}, ModelLayout{"mixtral", "expert=2 pipe=2 schedule=zero_bubble"},
        ModelLayout{"mixtral", "expert=2 recompute=full"}, ModelLayout{"mixtral", "expert=2 recompute=light"},
        ModelLayout{"qwen3_moe", "expert=2 tensor=2"}, ModelLayout{"olmoe", "expert=2 data=2 zero=3"},
        ModelLayout{"mixtral", "data=2 tensor=2 zero=2"}),
    [](const auto& info) { return test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(Losses, ExpertLayouts,
                         testing::Values(ModelLayout{"mixtral-both-zloss", "expert=2 data=2"},
                                         ModelLayout{"mixtral-global-zloss", "expert=2 data=2 zero=1"},
                                         ModelLayout{"mixtral-global", "expert=2 pipe=2"},
                                         ModelLayout{"mixtral-global", "context=2"},
                                         ModelLayout{"mixtral-zloss", "context=2"},
                                         ModelLayout{"mixtral-both-zloss", "expert=2 tensor=2 sequence_parallel"}),
                         [](const auto& info) { return test_name(info.param); });

// Experts over the axes of other splits, or factors of them, by a rule: with or without an axis of their own.
INSTANTIATE_TEST_SUITE_P(Folded, ExpertLayouts,
                         testing::Values(ModelLayout{"mixtral", "data=2 rule=expert:data"},
                                         ModelLayout{"mixtral-bias", "data=2 zero=3 rule=expert:data"},
                                         ModelLayout{"mixtral", "tensor=2 rule=expert:tensor"},
                                         ModelLayout{"mixtral", "data=2 tensor=2 rule=expert:tensor"},
                                         ModelLayout{"mixtral-bias", "data=2 tensor=2 rule=expert:data+tensor"},
                                         ModelLayout{"mixtral", "data=2 context=2 zero=2 rule=expert:data+context"},
                                         ModelLayout{"mixtral-both", "data=4 zero=1 rule=expert:data.1"},
                                         ModelLayout{"mixtral", "expert=2 tensor=2 zero=3 rule=expert:tensor"},
                                         ModelLayout{"mixtral-three", "expert=3 data=2 zero=1"},
                                         ModelLayout{"mixtral", "data=2 tensor=2 pipe=2 rule=expert:data+tensor"}),
                         [](const auto& info) { return test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(
    DeepSeek, ExpertLayouts,
    testing::Values(ModelLayout{"deepseek_v3", "data=2 zero=1"}, ModelLayout{"deepseek_v3", "expert=2"},
                    ModelLayout{"deepseek_v3", "expert=4 zero=3"},
                    ModelLayout{"deepseek_v3-both", "expert=2 data=2 zero=2"}, ModelLayout{"deepseek_v3", "tensor=2"},
                    ModelLayout{"deepseek_v3-wide", "tensor=4 sequence_parallel"},
                    ModelLayout{"deepseek_v3", "expert=2 tensor=2"}, ModelLayout{"deepseek_v3", "context=2"},
                    ModelLayout{"deepseek_v3-wide", "context=2 method=ring"},
                    ModelLayout{"deepseek_v3", "context=2 method=ulysses"},
                    ModelLayout{"deepseek_v3", "expert=2 context=2"}, ModelLayout{"deepseek_v3", "pipe=2"},
                    ModelLayout{"deepseek_v3-wide", "expert=2 pipe=2 schedule=zero_bubble"},
                    ModelLayout{"deepseek_v3", "expert=2 recompute=full"},
                    ModelLayout{"deepseek_v3", "recompute=selective data=2"}),
    [](const auto& info) { return test_name(info.param); });

INSTANTIATE_TEST_SUITE_P(
    GptOss, ExpertLayouts,
    testing::Values(ModelLayout{"gpt_oss", "data=2 zero=2"}, ModelLayout{"gpt_oss", "expert=2"},
                    ModelLayout{"gpt_oss", "expert=4 zero=3"}, ModelLayout{"gpt_oss", "expert=2 data=2 zero=1"},
                    ModelLayout{"gpt_oss", "tensor=2"}, ModelLayout{"gpt_oss", "tensor=4 sequence_parallel"},
                    ModelLayout{"gpt_oss", "expert=2 tensor=2"}, ModelLayout{"gpt_oss", "context=2"},
                    ModelLayout{"gpt_oss", "context=2 method=ring"}, ModelLayout{"gpt_oss", "context=4 method=ring"},
                    ModelLayout{"gpt_oss", "context=2 method=ulysses"}, ModelLayout{"gpt_oss", "expert=2 context=2"},
                    ModelLayout{"gpt_oss-drops", "expert=2 pipe=2"}, ModelLayout{"gpt_oss", "expert=2 recompute=full"},
                    ModelLayout{"gpt_oss", "recompute=light tensor=2"}),
    [](const auto& info) { return test_name(info.param); });

TEST(Experts, SlotsWithoutATokenAreNeverRead) {
  for (const char* model : {"mixtral", "mixtral-drops", "gpt_oss", "deepseek_v3-both"}) {
    config::Settings s = model_of(model, "fp32");
    s.parallel.device = "cpu";
    Machine plain(s), poisoned(s, std::make_unique<PoisonedSlots>());
    for (int64_t step = 0; step < 2; ++step) EXPECT_EQ(poisoned.step(step, 0.01), plain.step(step, 0.01)) << model;
    EXPECT_EQ(poisoned.states(program::StateKind::weight), plain.states(program::StateKind::weight)) << model;
  }
}

// In fp32 on the processor: nearly the answer of the reference.
TEST(Experts, KernelsOfTheProcessorInLayouts) {
  for (const char* model : {"mixtral", "gpt_oss", "deepseek_v3-both"}) {
    const config::Settings one = model_of(model, "fp32");
    const Found whole = found_in(one, false);
    for (const char* layout : {"", "expert=2 data=2 zero=3", "expert=2 tensor=2", "expert=2 context=2", "pipe=2"}) {
      config::Settings s = one;
      s.parallel.device = "cpu";
      set_layout(s, layout);
      s.train.micro_batch /= config::data_ranks(s.parallel);
      EXPECT_EQ(difference(found_in(s, false).record, whole.record, 1e-4), "") << model << " " << layout;
    }
  }
}

// On devices: the first step is enqueued, the second captured, the third replayed. All give nearly the answer of one
// rank of the processor, with the same experts.
TEST_P(ExpertsOnDevices, EqualOneRankOfTheProcessor) {
  const auto& [model, layout] = GetParam();
  const bool narrow = model.ends_with("bf16");
  config::Settings one = model_of(model, narrow ? "bf16" : "fp32");
  one.parallel.device = "cpu";
  config::Settings s = one;
  set_layout(s, "device=emulated " + layout);
  s.train.micro_batch /= config::data_ranks(s.parallel);
  Found whole = found_in(one, false);
  const Found split = found_in(s, false);
  if (s.parallel.pipe > 1) whole.statistics.erase("logits");
  EXPECT_EQ(difference(split.record, whole.record, narrow ? 0.05 : 1e-4), "");
  EXPECT_TRUE(split.captured);
  EXPECT_EQ(split.statistics.size(), whole.statistics.size());
  for (const auto& [name, x] : whole.statistics)
    for (size_t i = 0; i < x.size() && !narrow; ++i)
      EXPECT_NEAR(split.statistics.at(name)[i], x[i], name == "tokens" || name == "balance" ? 0 : 1e-3) << name;
}

INSTANTIATE_TEST_SUITE_P(
    All, ExpertsOnDevices,
    testing::Values(
        ModelLayout{"mixtral", ""}, ModelLayout{"mixtral-bf16", ""}, ModelLayout{"mixtral-bias", "expert=2"},
        ModelLayout{"mixtral-drops-both-zloss", "expert=2 data=2 zero=1"},
        ModelLayout{"mixtral-global", "expert=2 data=2 zero=3"}, ModelLayout{"mixtral", "expert=2 tensor=2"},
        ModelLayout{"mixtral-sigmoid", "expert=2 context=2"},
        ModelLayout{"mixtral", "expert=2 pipe=2 schedule=zero_bubble"},
        ModelLayout{"mixtral-three", "expert=3 recompute=full"}, ModelLayout{"mixtral", "data=2 rule=expert:data"},
        ModelLayout{"qwen3_moe", "expert=2 tensor=2 sequence_parallel"}, ModelLayout{"olmoe", "data=2 zero=2"},
        ModelLayout{"olmoe-bf16", "expert=2"}, ModelLayout{"deepseek_v3-both", "expert=2 data=2"},
        ModelLayout{"deepseek_v3-wide", "context=2 method=ring"}, ModelLayout{"deepseek_v3", "tensor=2 zero=1"},
        ModelLayout{"gpt_oss", "expert=2 tensor=2"}, ModelLayout{"gpt_oss", "context=2 recompute=light"},
        ModelLayout{"gpt_oss-drops", "pipe=2 data=2 zero=1"}),
    [](const auto& info) { return test_name(info.param); });

TEST(Experts, TiesAndExpertsWithoutTokensEqualOneRank) {
  for (const char* layout : {"expert=2", "expert=4", "expert=2 data=2 zero=3", "expert=2 tensor=2", "context=2"})
    for (const char* model : {"mixtral", "mixtral-one", "mixtral-bias", "deepseek_v3", "gpt_oss"})
      EXPECT_EQ(difference_of({model, layout}, true), "") << model << " " << layout;
}

// Ties select the lowest expert: with one expert per token, the first receives all.
TEST(Experts, OfEqualScoresTheLowestIsTaken) {
  const config::Settings s = model_of("mixtral-one", "fp64");
  train::LayoutRun run(s, std::nullopt, start_with_ties);
  record(run, s, 1, 0.0);
  EXPECT_DOUBLE_EQ(run.executor(0).number(models::kExpertBalance), 4.0);
}

// On a device, too, with the same text.
TEST(Experts, ATokenWithoutASlotEndsTheRun) {
  for (const char* device : {"reference", "emulated"}) {
    config::Settings s = model_of("mixtral-one", std::string(device) == "emulated" ? "fp32" : "fp64");
    s.parallel.device = device;
    s.train.expert_bound = 1.0;
    EXPECT_EQ(error_of([&] {
                train::LayoutRun run(s, std::nullopt, start_with_ties);
                record(run, s, 1, 0.0);
              }),
              "[experts] layer 0: 8 tokens of a sample use expert 0, which has 2 slots for each sample; raise "
              "train.expert_bound, leave it out for as many slots as can be needed, or set train.expert_overflow = "
              "\"drop\"");
  }
}

// Balancing sees a step, not its micro-batches: loss, gradients, biases and metrics are those of one micro-batch.
TEST(Experts, BalancingIsIndependentOfMicroBatches) {
  for (const char* model : {"mixtral-global-zloss", "mixtral-both", "mixtral-bias"}) {
    config::Settings one = model_of(model, "fp64");
    one.train.micro_batch = one.train.global_batch;
    const Found whole = found_in(one, false);
    for (const int64_t micro_batch : {4, 1}) {
      config::Settings several = one;
      several.train.micro_batch = micro_batch;
      const Found split = found_in(several, false);
      EXPECT_EQ(difference(split.record, whole.record, 1e-9), "") << model << " " << micro_batch;
      for (const auto& [name, x] : whole.statistics)
        for (size_t i = 0; i < x.size() && name != "logits"; ++i)
          EXPECT_NEAR(split.statistics.at(name)[i], x[i], 1e-12) << name;
    }
  }
}

// With train.balance = "global": the loss of a step weighs experts by their tokens in the step before; before the
// first, all are equal.
TEST(Experts, TheGlobalLossUsesTheLoadOfTheStepBefore) {
  config::Settings s = model_of("mixtral-one-global", "fp64");
  train::LayoutRun run(s, std::nullopt, start_with_ties);
  const auto loss = [&] {
    return run.executor(0).number(std::string(models::kFurtherLoss) + "balance") /
           run.executor(0).number(models::kLossCount);
  };
  record(run, s, 1, 0.0);
  const double labelled = run.tokens() / static_cast<double>(s.train.global_batch * s.train.sequence);
  EXPECT_LT(labelled, 1.0);
  EXPECT_NEAR(loss(), static_cast<double>(s.model.layers), 1e-12);
  EXPECT_EQ(run.state("layer0.ffn.router.previous"), (std::vector<double>{64, 0, 0, 0}));
}

// Tokens are dropped per sample, so equally in every layout.
TEST(Experts, DroppedTokensAreTheSameInEveryLayout) {
  config::Settings one = model_of("mixtral", "fp64");
  one.train.expert_bound = 0.75;
  one.train.expert_overflow = "drop";
  config::Settings several = one;
  set_layout(several, "expert=2 data=2");
  several.train.micro_batch /= config::data_ranks(several.parallel);
  const Found whole = found_in(one, true), split = found_in(several, true);
  EXPECT_EQ(difference(split.record, whole.record, 1e-9), "");
}

// The bias of underloaded experts rises by the rate in each step, that of others falls.
TEST(Experts, TheBiasFollowsTheTokensOfTheWholeStep) {
  config::Settings s = model_of("mixtral-one-bias", "fp64");
  train::LayoutRun run(s, std::nullopt, start_with_ties);
  record(run, s, 1, 0.0);
  const std::vector<double> bias = run.state("layer0.ffn.router.bias");
  EXPECT_EQ(bias, (std::vector<double>{-0.01, 0.01, 0.01, 0.01}));
}

}  // namespace kintsugi::tests::experts_test
