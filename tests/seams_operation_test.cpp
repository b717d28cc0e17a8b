// Adds an operation with an optional operand in this file: its row, gradient and kernels. A graph with it is
// differentiated, lowered for one rank and for two, and run on threads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/step_test.h"
#include "tests/weights_of_a_step.h"

namespace kintsugi::tests::seams_operation_test {
namespace {

using graph::Graph;
using graph::kAbsent;
using graph::kNone;
using graph::Op;
using graph::OpRow;
using graph::OutTypes;
using graph::Types;
using graph::ValueId;
using kernels::Kernel;
using kernels::KernelCall;
using tensor::Attributes;
using tensor::OperandList;
using tensor::optional;
using tensor::View;

// y = (x - shift) * gain. x, y: [rows columns], shift, gain: [columns]. The optional operand is in the middle.
constexpr OperandList kIns = {"x", optional("shift"), "gain"}, kOuts = {"y"};
enum : size_t { kX, kShift, kGain };
// dx [rows columns], dshift, dgain [columns]
constexpr OperandList kGradIns = {"x", optional("shift"), "gain", "dy"},
                      kGradOuts = {"dx", optional("dshift"), "dgain"};
enum : size_t { kDy = kGain + 1 };
enum : size_t { kDx, kDshift, kDgain };

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), shift = op.in("shift"), gain = op.in("gain");
  OutTypes types = {g.type(x), kAbsent, g.gradient_type(gain)};
  if (shift != kNone) types = {g.type(x), g.gradient_type(shift), g.gradient_type(gain)};
  const std::vector<ValueId> made = g.make("centered_grad", {x, shift, gain, dy[0]}, types);
  const Op& back = g.op_at(static_cast<size_t>(g.value(made[0]).op));
  return {back.out("dx"), back.out("dshift"), back.out("dgain")};
}

const graph::OpTable& table() {
  static const graph::OpTable all = [] {
    std::vector<OpRow> rows = ops::operations().rows();
    rows.push_back({.kind = "centered",
                    .ins = kIns,
                    .outs = kOuts,
                    .infer = [](Types ins, const Attributes&) -> OutTypes { return {ins["x"]}; },
                    .grad = grad,
                    .flops =
                        [](Types ins, Types, const Attributes&) {
                          return (ins.has("shift") ? 2.0 : 1.0) * static_cast<double>(ins["x"].shape.elements());
                        },
                    .in_place = {{"y", "x"}}});
    rows.push_back({.kind = "centered_grad",
                    .ins = kGradIns,
                    .outs = kGradOuts,
                    .family = "centered",
                    .keeps_zero = true,
                    .in_place = {{"dx", "dy"}},
                    .accumulates = {"dshift", "dgain"}});
    return graph::OpTable(std::move(rows));
  }();
  return all;
}

void centered(const KernelCall& call) {
  const std::span<float> x = call.ins[kX].as<float>(), gain = call.ins[kGain].as<float>(), y = call.outs[0].as<float>();
  for (size_t i = 0; i < y.size(); ++i) {
    const size_t column = i % gain.size();
    const float shift = call.ins[kShift].data ? call.ins[kShift].as<float>()[column] : 0.0f;
    y[i] = (x[i] - shift) * gain[column];
  }
}

void centered_grad(const KernelCall& call) {
  const std::span<float> x = call.ins[kX].as<float>(), gain = call.ins[kGain].as<float>(),
                         dy = call.ins[kDy].as<float>(), dx = call.outs[kDx].as<float>();
  std::vector<float> dshift(gain.size(), 0.0f), dgain(gain.size(), 0.0f);
  for (size_t i = 0; i < x.size(); ++i) {
    const size_t column = i % gain.size();
    const float shift = call.ins[kShift].data ? call.ins[kShift].as<float>()[column] : 0.0f;
    dshift[column] -= dy[i] * gain[column];
    dgain[column] += dy[i] * (x[i] - shift);
    dx[i] = dy[i] * gain[column];
  }
  const auto store = [&](size_t output, const std::vector<float>& from) {
    if (!call.outs[output].data) return;
    const std::span<float> to = call.outs[output].as<float>();
    for (size_t i = 0; i < to.size(); ++i) to[i] = (call.accumulates(output) ? to[i] : 0.0f) + from[i];
  };
  store(kDshift, dshift);
  store(kDgain, dgain);
}

// A kernel set with the two kernels of this file added.
class WithCentered : public kernels::KernelSet {
 public:
  explicit WithCentered(std::unique_ptr<KernelSet> others) : others_(std::move(others)) {}
  std::string_view name() const override { return others_->name(); }
  const Kernel& find(std::string_view kind) const override {
    static const Kernel own[] = {{"centered", kIns, kOuts, centered},
                                 {"centered_grad", kGradIns, kGradOuts, centered_grad}};
    for (const Kernel& kernel : own)
      if (kernel.kind == kind) return kernel;
    return others_->find(kind);
  }

 private:
  std::unique_ptr<KernelSet> others_;
};

constexpr int64_t kRows = 6, kColumns = 4;

// The sum of (x w - shift) * gain, where all are weights.
struct CenteredStep : lower::TestStep {
  explicit CenteredStep(bool shifts) : TestStep(table()) {
    const auto normal = [this](const std::string& name, tensor::Shape shape) {
      return states.add(
          {.name = name, .type = {std::move(shape), tensor::DType::f32}, .init = {graph::Init::Kind::normal, 1.0}});
    };
    const graph::StateId x = normal("x", {{"rows", kRows}, {"inner", 3}}),
                         w = normal("w", {{"inner", 3}, {"columns", kColumns}}),
                         gain = normal("gain", {{"columns", kColumns}});
    const graph::StateId shift = shifts ? normal("shift", {{"columns", kColumns}}) : kNone;
    finish([=](Graph& g) {
      const ValueId product = g.contract(g.read(x), g.read(w), "rows columns", tensor::DType::f32);
      return g.op("centered", {product, shifts ? g.read(shift) : kNone, g.read(gain)});
    });
  }
};

plan::Plan plan_of(int64_t ranks, const std::string& rule) {
  plan::Plan plan = {.mesh = mesh::Mesh({{.name = "axis", .size = ranks}})};
  if (ranks > 1) plan.rules.push_back(plan::parse_rule(rule));
  return plan;
}

// After a step: each weight minus a tenth of its gradient, twice, since there are two micro-batches.
States by_hand(const States& before) {
  const std::vector<double>&x = before.at("x"), &w = before.at("w"), &gain = before.at("gain");
  const std::vector<double> shift = before.contains("shift") ? before.at("shift") : std::vector<double>(kColumns, 0.0);
  States after = before;
  for (size_t r = 0; r < kRows; ++r)
    for (size_t c = 0; c < kColumns; ++c) {
      double product = 0;
      for (size_t k = 0; k < 3; ++k) {
        product += x[3 * r + k] * w[kColumns * k + c];
        after["x"][3 * r + k] -= 0.2 * gain[c] * w[kColumns * k + c];
        after["w"][kColumns * k + c] -= 0.2 * gain[c] * x[3 * r + k];
      }
      after["gain"][c] -= 0.2 * (product - shift[c]);
      if (before.contains("shift")) after["shift"][c] += 0.2 * gain[c];
    }
  return after;
}

}  // namespace

TEST(SeamsOperation, HasNamesShapesAndCosts) {
  const CenteredStep with(true), without(false);
  for (const CenteredStep* step : {&with, &without}) {
    const bool shifts = step == &with;
    for (const Op& op : step->micro.ops()) {
      if (op.kind() == "centered") {
        EXPECT_EQ(op.ins.size(), shifts ? 3u : 2u);
      }
      if (op.kind() != "centered_grad") continue;
      EXPECT_EQ(op.in("shift") == kNone, !shifts);
      EXPECT_EQ(op.out("dshift") == kNone, !shifts);
      EXPECT_EQ(to_string(step->micro.shape(op.out("dgain"))), "[columns:4]");
    }
  }
}

TEST(SeamsOperation, RunsOnOneRankAndOnTwo) {
  const WithCentered reference(kernels::reference_kernels()), cpu(kernels::cpu_kernels());
  for (const bool shifts : {false, true})
    for (const WithCentered* set : {&reference, &cpu})
      for (const auto& [ranks, rule] : std::vector<std::pair<int64_t, std::string>>{
               {1, ""}, {2, "rows -> axis"}, {2, "columns -> axis"}, {2, "columns in centered -> axis"}}) {
        SCOPED_TRACE(fmt::format("{} {} {} {}", set->name(), ranks, rule, shifts ? "with shift" : "without"));
        const CenteredStep step(shifts);
        const plan::Plan plan = plan_of(ranks, rule);
        const std::vector<program::Program> programs =
            lower::lower(step.source(), {.plan = plan, .kernels = *set, .threads = 1});
        ASSERT_EQ(programs.size(), 1u);
        const auto [before, after] = weights_of_a_step(programs[0], *set, [](const auto&) {});
        ASSERT_EQ(before.size(), shifts ? 4u : 3u);
        const States want = by_hand(before);
        for (const auto& [name, values] : want)
          for (size_t i = 0; i < values.size(); ++i)
            EXPECT_NEAR(after.at(name)[i], values[i], 1e-5) << name << " " << i;
      }
}

}  // namespace kintsugi::tests::seams_operation_test
