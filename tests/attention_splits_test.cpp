// Attention with a window, capped scores, documents, sinks, norms per head and partial rotation: a step of a small
// graph on one rank, and with every split of its dims.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/step_test.h"
#include "tests/weights_of_a_step.h"

namespace kintsugi::tests::attention_splits_test {
namespace {

using graph::Graph;
using graph::ValueId;

constexpr int64_t kBatch = 2, kSeq = 10;

struct AttentionStep : lower::TestStep {
  AttentionStep(bool causal, bool documents) {
    const auto normal = [this](const std::string& name, tensor::Shape shape) {
      return states.add(
          {.name = name, .type = {std::move(shape), tensor::DType::f32}, .init = {graph::Init::Kind::normal, 1.0}});
    };
    const tensor::Dim batch = {"batch", kBatch}, seq = {"seq", kSeq}, heads = {"kv_heads", 4}, group = {"group", 2},
                      dim = {"head_dim", 6};
    const graph::StateId q = normal("q", {batch, seq, heads, group, dim}), k = normal("k", {batch, seq, heads, dim}),
                         v = normal("v", {batch, seq, heads, dim}), sinks = normal("sinks", {heads, group}),
                         each = normal("each", {dim}), all = normal("all", {heads, dim});
    finish([=](Graph& g) {
      const auto norm = [&](graph::StateId x, graph::StateId gamma, const char* whole) {
        return g.op("rms_norm", {g.read(x), g.read(gamma)},
                    {{"epsilon", 1e-5}, {"whole", whole}, {"gamma_offset", 1.0}});
      };
      const auto turned = [&](ValueId x) {
        return g.op("rotary", {x},
                    {{"theta", 100.0}, {"inverse", int64_t{0}}, {"interleaved", int64_t{0}}, {"dims", int64_t{4}}});
      };
      const auto key = [&](ValueId x) { return g.rename(x, "seq", "key_seq"); };
      const tensor::Type ids = {{batch, seq}, tensor::DType::i32};
      const ValueId starts = documents ? g.input("starts", ids) : graph::kNone;
      return g.apply("attention",
                     {turned(norm(q, each, "head_dim")), key(turned(norm(k, all, "kv_heads head_dim"))), key(g.read(v)),
                      starts, documents ? key(starts) : graph::kNone, g.read(sinks)},
                     {{"causal", int64_t{causal}},
                      {"scale", 0.4},
                      {"dropout", 0.0},
                      {"key", "a"},
                      {"window", int64_t{4}},
                      {"softcap", 1.5}})[0];
    });
  }
};

struct Split {
  const char* name;
  int64_t ranks;
  std::vector<std::string> rules;
  bool zigzag = false;
};

const Split kSplits[] = {
    {"samples", 2, {"batch -> axis"}},
    {"tensor", 2, {"kv_heads -> axis"}},
    {"tensor, padded", 3, {"kv_heads -> axis, padded"}},
    {"gathered", 2, {"seq -> axis, padded"}, true},
    {"gathered, padded", 3, {"seq -> axis, padded"}},
    {"ring", 2, {"key_seq in attention -> axis, padded, in steps", "seq -> axis, padded"}, true},
    {"ring, padded", 3, {"key_seq in attention -> axis, padded, in steps", "seq -> axis, padded"}},
    {"ulysses", 2, {"kv_heads in attention -> axis", "seq -> axis, padded"}, true},
};

std::pair<States, States> weights_on(const AttentionStep& step, const plan::Plan& plan, const kernels::KernelSet& set) {
  std::vector<int32_t> starts;
  for (int64_t i = 0; i < kBatch * kSeq; ++i) starts.push_back(i % kSeq >= 7 ? 7 : i % kSeq >= 2 ? 2 : 0);
  const std::vector<program::Program> programs =
      lower::lower(step.source(), {.plan = plan, .kernels = set, .threads = 1});
  return weights_of_a_step(programs.at(0), set, [&](const run::Executor::Inputs& inputs) {
    if (inputs.has("starts")) inputs.set("starts", {starts, 0, kSeq}, 0);
  });
}

}  // namespace

TEST(AttentionSplits, AreTheWhole) {
  const auto reference = kernels::reference_kernels(), cpu = kernels::cpu_kernels();
  for (const bool causal : {true, false})
    for (const bool documents : {true, false}) {
      const AttentionStep step(causal, documents);
      const auto [before, want] = weights_on(step, {.mesh = mesh::Mesh({{.name = "axis", .size = 1}})}, *reference);
      for (const auto& [name, values] : want) EXPECT_NE(values, before.at(name)) << name << " has no gradient";
      for (const auto* set : {&reference, &cpu})
        for (const Split& split : kSplits) {
          SCOPED_TRACE(fmt::format("{} {} {}{}", split.name, (*set)->name(), causal ? "causal" : "full",
                                   documents ? " documents" : ""));
          mesh::Axis axis = {.name = "axis", .size = split.ranks};
          if (split.zigzag) axis.zigzag = {"seq", "key_seq"};
          plan::Plan plan = {.mesh = mesh::Mesh({axis})};
          for (const std::string& rule : split.rules) plan.rules.push_back(plan::parse_rule(rule));
          const auto [same, got] = weights_on(step, plan, **set);
          EXPECT_EQ(same, before);
          for (const auto& [name, values] : want)
            for (size_t i = 0; i < values.size(); ++i)
              EXPECT_NEAR(got.at(name)[i], values[i], 2e-5) << name << " " << i;
        }
    }
}

}  // namespace kintsugi::tests::attention_splits_test
