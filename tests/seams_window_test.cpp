// Adds an operation with a window in this file: a one-dimensional stencil, its gradients and kernels. From its row the
// partitioner derives the rows that ranks exchange when the dim is split. Training steps on several ranks equal those
// on one, for all kinds of kernels, strides, dilations and padding.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>

#include "kintsugi/base/error.h"
#include "kintsugi/device/emulated/emulated.h"
#include "kintsugi/kernels/cpu/cpu_kernels.h"
#include "kintsugi/kernels/gpu/device_kernels.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/step_test.h"
#include "kintsugi/program/verify_communication.h"
#include "kintsugi/tensor/window.h"
#include "tests/weights_of_a_step.h"

namespace kintsugi::tests::seams_window_test {
namespace {

using graph::Graph;
using graph::Op;
using graph::OpRow;
using graph::OutTypes;
using graph::Types;
using graph::ValueId;
using kernels::Kernel;
using kernels::KernelCall;
using tensor::Attributes;
using tensor::OperandList;
using tensor::Window;

constexpr int64_t kBatch = 2, kChannels = 3;

// y[b, c, o] = sum over k of w[c, k] * x[b, c, o * stride - low + k * dilation].
// x: [batch channel length], w: [channel kernel_length], y: [batch channel length]
constexpr OperandList kIns = {"x", "w"}, kOuts = {"y"};
constexpr OperandList kDxIns = {"dy", "w"}, kDxOuts = {"dx"};
constexpr OperandList kDwIns = {"x", "dy"}, kDwOuts = {"dw"};

tensor::Shape value_shape(int64_t length) {
  return {{"batch", kBatch}, {"channel", kChannels}, {"length", length}};
}

std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), w = op.in("w");
  const Attributes attributes = op.attributes;  // the operation moves when others are added
  const ValueId dx = g.make("stencil_dx", {dy[0], w}, {g.type(x)}, attributes)[0];
  return {dx, g.make("stencil_dw", {x, dy[0]}, {g.gradient_type(w)}, attributes)[0]};
}

const graph::OpTable& table() {
  static const graph::OpTable all = [] {
    std::vector<OpRow> rows = ops::operations().rows();
    rows.push_back({.kind = "stencil",
                    .ins = kIns,
                    .outs = kOuts,
                    .infer = [](Types ins, const Attributes& attributes) -> OutTypes {
                      const Window window = tensor::windows_of(attributes)[0].window;
                      return {{value_shape(window.outputs(ins["x"].shape.size("length"))), ins["x"].dtype}};
                    },
                    .grad = grad,
                    .windowed = {"x"}});
    rows.push_back({.kind = "stencil_dx", .ins = kDxIns, .outs = kDxOuts, .windowed = {"dx"}});
    rows.push_back({.kind = "stencil_dw", .ins = kDwIns, .outs = kDwOuts, .windowed = {"x"}});
    return graph::OpTable(std::move(rows));
  }();
  return all;
}

// Calls f(position in w, in the windowed operand, in the other one) for each multiplication.
template <typename F>
void for_products(const KernelCall& call, const tensor::View& by_input, const tensor::View& by_output, const F& f) {
  const Window w = tensor::windows_of(call.attributes)[0].window;
  const int64_t rows = by_output.size("batch") * by_output.size("channel"), inputs = by_input.size("length"),
                outputs = by_output.size("length"), channels = by_output.size("channel");
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t o = 0; o < outputs; ++o)
      for (int64_t k = 0; k < w.kernel; ++k) {
        const int64_t i = o * w.stride - w.low + k * w.dilation;
        if (i < 0 || i >= inputs) continue;
        f(static_cast<size_t>(row % channels * w.kernel + k), static_cast<size_t>(row * inputs + i),
          static_cast<size_t>(row * outputs + o));
      }
}

std::span<float> cleared(const tensor::View& v) {
  const std::span<float> values = v.as<float>();
  std::fill(values.begin(), values.end(), 0.0f);
  return values;
}

void stencil(const KernelCall& call) {
  const std::span<float> x = call.ins[0].as<float>(), w = call.ins[1].as<float>(), y = cleared(call.outs[0]);
  for_products(call, call.ins[0], call.outs[0], [&](size_t k, size_t i, size_t o) { y[o] += w[k] * x[i]; });
}

void stencil_dx(const KernelCall& call) {
  const std::span<float> dy = call.ins[0].as<float>(), w = call.ins[1].as<float>(), dx = cleared(call.outs[0]);
  for_products(call, call.outs[0], call.ins[0], [&](size_t k, size_t i, size_t o) { dx[i] += w[k] * dy[o]; });
}

void stencil_dw(const KernelCall& call) {
  const std::span<float> x = call.ins[0].as<float>(), dy = call.ins[1].as<float>(), dw = cleared(call.outs[0]);
  for_products(call, call.ins[0], call.ins[1], [&](size_t k, size_t i, size_t o) { dw[k] += x[i] * dy[o]; });
}

// A kernel set with the three kernels of this file added.
class WithStencil : public kernels::KernelSet {
 public:
  explicit WithStencil(std::unique_ptr<KernelSet> others) : others_(std::move(others)) {}
  std::string_view name() const override { return others_->name(); }
  const Kernel& find(std::string_view kind) const override {
    static const Kernel own[] = {{"stencil", kIns, kOuts, stencil},
                                 {"stencil_dx", kDxIns, kDxOuts, stencil_dx},
                                 {"stencil_dw", kDwIns, kDwOuts, stencil_dw}};
    for (const Kernel& kernel : own)
      if (kernel.kind == kind) return kernel;
    return others_->find(kind);
  }

 private:
  std::unique_ptr<KernelSet> others_;
};

// The sum of gelu(stencil(gelu(stencil(x)))), where x and both kernels are weights.
struct StencilStep : lower::TestStep {
  StencilStep(int64_t length, const Window& window) : TestStep(table()) {
    const auto normal = [this](const std::string& name, tensor::Shape shape) {
      return states.add(
          {.name = name, .type = {std::move(shape), tensor::DType::f32}, .init = {graph::Init::Kind::normal, 1.0}});
    };
    const tensor::Shape kernel = {{"channel", kChannels}, {"kernel_length", window.kernel}};
    const graph::StateId x = normal("x", value_shape(length)), first = normal("first", kernel),
                         second = normal("second", kernel);
    const Attributes form = {{"form", "erf"}};
    Attributes attributes;
    set_windows(attributes, {{"length", window}});
    finish([=](Graph& g) {
      const ValueId once = g.op("gelu", {g.op("stencil", {g.read(x), g.read(first)}, attributes)}, form);
      return g.op("gelu", {g.op("stencil", {once, g.read(second)}, attributes)}, form);
    });
  }
};

plan::Plan plan_of(std::vector<mesh::Axis> axes, const std::vector<std::string>& rules) {
  plan::Plan plan = {.mesh = mesh::Mesh(std::move(axes))};
  for (const std::string& rule : rules) plan.rules.push_back(plan::parse_rule(rule));
  return plan;
}

program::Program program_of(const StencilStep& step, const plan::Plan& plan, const kernels::KernelSet& set) {
  std::vector<program::Program> programs = lower::lower(step.source(), {.plan = plan, .kernels = set, .threads = 1});
  EXPECT_EQ(programs.size(), 1u);
  return std::move(programs.at(0));
}

void expect_equal(const States& found, const States& want, double tolerance) {
  ASSERT_EQ(found.size(), want.size());
  for (const auto& [name, values] : want)
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(found.at(name)[i], values[i], tolerance) << name << " " << i;
}

struct Trial {
  int64_t length = 0;
  Window window;
};

std::vector<Trial> trials() {
  std::vector<Trial> list;
  for (int64_t kernel = 1; kernel <= 7; ++kernel)
    for (int64_t stride = 1; stride <= 3; ++stride)
      for (int64_t dilation = 1; dilation <= 2; ++dilation) {
        Window w = {.kernel = kernel, .stride = stride, .dilation = dilation};
        w.low = w.extent() / 2;  // an even kernel has more before than after
        w.high = w.extent() - 1 - w.low;
        list.push_back({40 + kernel, w});
        w.low = 0;  // all of the padding after, or none
        w.high = kernel % 2 == 0 ? w.extent() - 1 : 0;
        list.push_back({60, w});
      }
  return list;
}

std::string text(const Trial& t) {
  return fmt::format("length {} kernel {} stride {} dilation {} padding {} {}", t.length, t.window.kernel,
                     t.window.stride, t.window.dilation, t.window.low, t.window.high);
}

// The rank that has each position of a dim, split once per prime factor.
std::vector<int64_t> owners(int64_t size, const std::vector<int64_t>& factors) {
  std::vector<int64_t> owner;
  for (int64_t i = 0; i < size; ++i) {
    int64_t at = i, share = size, rank = 0;
    for (int64_t f : factors) {
      share = (share + f - 1) / f;
      rank = rank * f + at / share;
      at %= share;
    }
    owner.push_back(rank);
  }
  return owner;
}

// The rows that the busiest rank sends: each row once to each rank whose outputs read between its first and last input.
int64_t rows_sent(int64_t inputs, const Window& w, const std::vector<int64_t>& factors, bool back) {
  const std::vector<int64_t> owner = owners(inputs, factors), reader = owners(w.outputs(inputs), factors);
  std::map<int64_t, std::pair<int64_t, int64_t>> reach;  // of each rank
  for (size_t o = 0; o < reader.size(); ++o) {
    const int64_t begin = static_cast<int64_t>(o) * w.stride - w.low, end = begin + w.extent();
    const auto [at, fresh] = reach.try_emplace(reader[o], begin, end);
    if (!fresh) at->second.second = end;
  }
  std::map<int64_t, int64_t> sent;
  int64_t most = 0;
  for (const auto& [rank, range] : reach)
    for (int64_t i = std::max<int64_t>(0, range.first); i < std::min(inputs, range.second); ++i)
      if (const int64_t own = owner[static_cast<size_t>(i)]; own != rank)
        most = std::max(most, ++sent[back ? rank : own]);
  return most;
}

}  // namespace

TEST(SeamsWindow, AnyWindowOnSeveralRanks) {
  const WithStencil reference(kernels::reference_kernels()), cpu(kernels::cpu_kernels());
  int exchanged = 0;
  for (const Trial& t : trials()) {
    SCOPED_TRACE(text(t));
    const StencilStep step(t.length, t.window);
    const States want =
        weights_of_a_step(program_of(step, plan_of({}, {}), reference), reference, [](const auto&) {}).second;
    for (const auto& [ranks, factors] :
         std::vector<std::pair<int64_t, std::vector<int64_t>>>{{2, {2}}, {3, {3}}, {4, {2, 2}}}) {
      SCOPED_TRACE(ranks);
      const WithStencil& set = ranks == 3 ? cpu : reference;
      const program::Program p =
          program_of(step, plan_of({{.name = "space", .size = ranks}}, {"length -> space, padded"}), set);
      expect_equal(weights_of_a_step(p, set, [](const auto&) {}).second, want, 2e-4);
      if (HasFatalFailure()) return;

      // For the input of both stencils in the forward pass, and its gradient in the backward pass. The weight x is
      // stored split too, since it has the dim.
      const int64_t between = t.window.outputs(t.length), bytes = kBatch * kChannels * 4;
      std::vector<double> wire, hand;
      for (const program::Body& body : p.bodies)
        if (body.does(program::Work::forward) || body.does(program::Work::backward))
          if (body.variant_of < 0)
            for (const program::Instruction& i : body.instructions)
              if (starts(i, program::Collective::halo)) wire.push_back(i.cost.wire_bytes);
      for (const int64_t rows :
           {rows_sent(t.length, t.window, factors, false), rows_sent(between, t.window, factors, false),
            rows_sent(between, t.window, factors, true), rows_sent(t.length, t.window, factors, true)})
        if (rows > 0) hand.push_back(static_cast<double>(rows * bytes));
      if (t.window.outputs(between) >= 2 * ranks) {  // else a dim is too short to be split by all factors
        EXPECT_EQ(wire, hand);
      }
      exchanged += static_cast<int>(wire.size());
    }
  }
  EXPECT_GT(exchanged, 200);
}

// Split in some places and not in others: rows are taken from replicated values, values are gathered, and two axes
// split two dims.
TEST(SeamsWindow, InOtherPlans) {
  const WithStencil set(kernels::reference_kernels());
  const Window window = {.kernel = 4, .stride = 2, .dilation = 2, .low = 3, .high = 2};
  const StencilStep step(37, window);
  const States want = weights_of_a_step(program_of(step, plan_of({}, {}), set), set, [](const auto&) {}).second;
  const auto two = [](int64_t first, int64_t second) {
    return std::vector<mesh::Axis>{{.name = "a", .size = first}, {.name = "b", .size = second}};
  };
  for (const auto& [axes, rules] : std::vector<std::pair<std::vector<mesh::Axis>, std::vector<std::string>>>{
           {two(1, 2), {"length in stencil -> b, padded"}},
           {two(1, 3), {"length in stencil_dx -> b, padded", "length in gelu -> b, padded"}},
           {two(1, 2), {"length in stencil_dw -> b, padded"}},
           {two(1, 4), {"length in gelu -> b, padded"}},
           {two(2, 2), {"length -> b, padded", "batch -> a"}},
           {two(2, 3), {"batch -> a", "channel -> b", "length -> a, padded"}},
           {two(2, 3), {"channel -> b", "length -> a, padded"}},
           {two(2, 2), {"length -> b a, padded"}},
           {two(2, 2), {"length in stencil -> a, padded", "length in gelu -> b, padded", "channel -> b a"}}}) {
    SCOPED_TRACE(rules.front());
    expect_equal(weights_of_a_step(program_of(step, plan_of(axes, rules), set), set, [](const auto&) {}).second, want,
                 2e-4);
  }
}

// A window that reads no row of a neighbour needs neither an exchange nor a copy.
TEST(SeamsWindow, PoolsOfWholeRowsAreViews) {
  const WithStencil set(kernels::reference_kernels());
  const StencilStep step(32, {.kernel = 2, .stride = 2});
  const program::Program p =
      program_of(step, plan_of({{.name = "space", .size = 2}}, {"length -> space, padded"}), set);
  for (const program::Body& body : p.bodies)
    for (const program::Instruction& i : body.instructions) {
      EXPECT_FALSE(i.cuts.halo) << i.kernel;
      EXPECT_FALSE(starts(i, program::Collective::halo));
    }
}

namespace {

// y[o] = 3 * x[o + 2], with the kernel of "scale": along a split dim, a rank needs as many rows as it outputs.
const graph::OpTable& shifts() {
  static const graph::OpTable all = [] {
    std::vector<OpRow> rows = ops::operations().rows();
    rows.push_back({.kind = "shifted",
                    .ins = {"x"},
                    .outs = {"y"},
                    .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
                      const Attributes attributes = op.attributes;
                      return {g.make("shifted_dx", {dy[0]}, {g.type(op.in("x"))}, attributes)[0]};
                    },
                    .windowed = {"x"}});
    rows.push_back({.kind = "shifted_dx", .ins = {"x"}, .outs = {"y"}, .windowed = {"y"}});
    return graph::OpTable(std::move(rows));
  }();
  return all;
}

class WithShift : public kernels::KernelSet {
 public:
  explicit WithShift(std::unique_ptr<KernelSet> others) : others_(std::move(others)) {}
  std::string_view name() const override { return others_->name(); }
  const Kernel& find(std::string_view kind) const override {
    return others_->find(kind.starts_with("shifted") ? "scale" : kind);
  }
  bool has(std::string_view kind) const override { return others_->has(kind); }
  device::Device* device() const override { return others_->device(); }
  bool on_device() const override { return others_->on_device(); }
  bool sums_in_place() const override { return others_->sums_in_place(); }

 private:
  std::unique_ptr<KernelSet> others_;
};

struct ShiftStep : lower::TestStep {
  ShiftStep() : TestStep(shifts()) {
    const graph::StateId x = states.add(
        {.name = "x", .type = {value_shape(17), tensor::DType::f32}, .init = {graph::Init::Kind::normal, 1.0}});
    finish([=](Graph& g) {
      const auto shifted = [&](ValueId v, int64_t length) {
        Attributes attributes = {{"by", 3.0}};
        set_windows(attributes, {{"length", {.low = -2}}});
        return g.make("shifted", {v}, {{value_shape(length), tensor::DType::f32}}, attributes)[0];
      };
      return g.op("gelu", {shifted(g.op("gelu", {shifted(g.read(x), 15)}, {{"form", "erf"}}), 13)}, {{"form", "erf"}});
    });
  }
};

double gelu(double x) {
  return x * 0.5 * (1 + std::erf(x / std::sqrt(2.0)));
}
double gelu_slope(double x) {
  return 0.5 * (1 + std::erf(x / std::sqrt(2.0))) + x * std::exp(-x * x / 2) / std::sqrt(2 * std::acos(-1.0));
}

}  // namespace

// Rows are exchanged between ranks that share an emulated device as between others.
TEST(SeamsWindow, OnADevice) {
  const ShiftStep step;
  for (const int64_t ranks : {2, 3, 4})
    for (const bool on_device : {false, true}) {
      SCOPED_TRACE(fmt::format("{} ranks{}", ranks, on_device ? " on a device" : ""));
      const WithShift set(on_device ? kernels::device_kernels(device::emulated_device())
                                    : kernels::reference_kernels());
      const plan::Plan plan = plan_of({{.name = "space", .size = ranks}}, {"length -> space, padded"});
      std::vector<program::Program> programs =
          lower::lower(step.source(), {.plan = plan, .kernels = set, .threads = 1});
      ASSERT_EQ(programs.size(), 1u);
      const auto [before, after] = weights_of_a_step(programs[0], set, [](const auto&) {});
      const std::vector<double>& x = before.at("x");
      std::vector<double> want = x;
      for (size_t row = 0; row < kBatch * kChannels; ++row)
        for (size_t o = 0; o < 13; ++o) {
          const double once = 3 * x[17 * row + o + 4], twice = 3 * gelu(once);
          want[17 * row + o + 4] -= 0.2 * gelu_slope(twice) * 3 * gelu_slope(once) * 3;  // two micro-batches
        }
      for (size_t i = 0; i < x.size(); ++i) EXPECT_NEAR(after.at("x")[i], want[i], 1e-4) << i;
    }
}

// Packed rows other than those of the halo are rejected before anything runs.
TEST(SeamsWindow, OtherRowsThanThoseOfTheHaloAreAnError) {
  const WithStencil set(kernels::reference_kernels());
  const StencilStep step(32, {.kernel = 3, .low = 1, .high = 1});
  program::Program p = program_of(step, plan_of({{.name = "space", .size = 2}}, {"length -> space, padded"}), set);
  EXPECT_NO_THROW(program::verify_communication(p));
  for (program::Body& body : p.bodies)
    for (program::Instruction& i : body.instructions)
      if (starts(i, program::Collective::halo)) i.cuts.halo->extent += 4;
  try {
    program::verify_communication(p);
    FAIL() << "no error";
  } catch (const base::InternalError& e) {
    EXPECT_NE(std::string(e.what()).find("of 5 rows sent and 5 received"), std::string::npos) << e.what();
  }
}

}  // namespace kintsugi::tests::seams_window_test
