// Adds a source of samples with parts that no module knows: an image of bytes and a grid of numbers. Trains and
// evaluates a small graph that reads both, on one rank and on two.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/evaluate/batch_inputs.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/step_test.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/loader.h"
#include "tests/weights_of_a_step.h"

namespace kintsugi::tests::seams_batch_test {
namespace {

using graph::Graph;
using graph::OutTypes;
using graph::Types;
using graph::ValueId;
using kernels::Kernel;
using kernels::KernelCall;
using samples::BatchMemory;
using samples::BatchView;
using samples::Part;
using samples::Parts;
using tensor::DType;

constexpr int64_t kBatch = 4, kChannels = 3, kHeight = 6, kWidth = 5, kColumns = 2, kOut = 2;

// pixels: [channel height width] bytes. grid: [height column] numbers.
class Scenes : public samples::SampleSource {
 public:
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override {
    samples::for_each_row(batch, parts_, [&](uint64_t row, const BatchView& view) {
      uint64_t i = 0;
      for (uint8_t& x : view.get<uint8_t>("pixels")) x = pixel(first + row, i++);
      i = 0;
      for (float& x : view.get<float>("grid")) x = number(first + row, i++);
    });
  }
  static uint8_t pixel(uint64_t sample, uint64_t i) { return static_cast<uint8_t>(37 * sample + 11 * i + 3); }
  static float number(uint64_t sample, uint64_t i) {
    return static_cast<float>(sample) - 0.25f * static_cast<float>(i);
  }

 private:
  Parts parts_ = {{.name = "pixels", .dtype = DType::u8, .shape = {kChannels, kHeight, kWidth}},
                  {.name = "grid", .dtype = DType::f32, .shape = {kHeight, kColumns}}};
};

// y = x / 255. x: bytes of any shape
const graph::OpTable& table() {
  static const graph::OpTable all = [] {
    std::vector<graph::OpRow> rows = ops::operations().rows();
    rows.push_back({.kind = "brightness",
                    .ins = {"x"},
                    .outs = {"y"},
                    .infer = [](Types ins, const tensor::Attributes&) -> OutTypes {
                      return {{ins["x"].shape, DType::f32}};
                    },
                    .keeps_zero = true});
    return graph::OpTable(std::move(rows));
  }();
  return all;
}

class WithBrightness : public kernels::KernelSet {
 public:
  explicit WithBrightness(std::unique_ptr<KernelSet> others) : others_(std::move(others)) {}
  std::string_view name() const override { return others_->name(); }
  const Kernel& find(std::string_view kind) const override {
    static const Kernel own = {"brightness", {"x"}, {"y"}, [](const KernelCall& call) {
                                 const std::span<const uint8_t> x = call.ins[0].as<uint8_t>();
                                 for (size_t i = 0; i < x.size(); ++i)
                                   call.outs[0].as<float>()[i] = static_cast<float>(x[i]) / 255.0f;
                               }};
    return kind == own.kind ? own : others_->find(kind);
  }

 private:
  std::unique_ptr<KernelSet> others_;
};

// The sum of brightness(pixels) w + grid v.
struct ScenesStep : lower::TestStep {
  ScenesStep() : TestStep(table()) {
    const auto normal = [this](const std::string& name, tensor::Shape shape) {
      return states.add(
          {.name = name, .type = {std::move(shape), DType::f32}, .init = {graph::Init::Kind::normal, 1.0}});
    };
    const graph::StateId w = normal("w",
                                    {{"channel", kChannels}, {"height", kHeight}, {"width", kWidth}, {"out", kOut}}),
                         v = normal("v", {{"height", kHeight}, {"column", kColumns}, {"out", kOut}});
    finish([=](Graph& g) {
      const tensor::Dim batch = {"batch", kBatch}, height = {"height", kHeight};
      const ValueId pixels = g.input("pixels", {{batch, {"channel", kChannels}, height, {"width", kWidth}}, DType::u8});
      const ValueId grid = g.input("grid", {{batch, height, {"column", kColumns}}, DType::f32});
      return g.add({g.contract(g.op("brightness", {pixels}), g.read(w), "batch out", DType::f32),
                    g.contract(grid, g.read(v), "batch out", DType::f32)});
    });
  }
};

std::vector<program::Program> programs_of(const kernels::KernelSet& set, int64_t ranks, const std::string& rule) {
  const ScenesStep step;
  plan::Plan plan = {.mesh = mesh::Mesh({{.name = "axis", .size = ranks}})};
  if (ranks > 1) plan.rules.push_back(plan::parse_rule(rule));
  return lower::lower(step.source(), {.plan = plan, .kernels = set, .threads = 1});
}

// The loss of the first kBatch samples with these weights.
double loss_by_hand(const States& weights) {
  double sum = 0;
  const auto add = [&](const std::vector<double>& w, const auto& x) {
    for (uint64_t sample = 0; sample < kBatch; ++sample)
      for (size_t i = 0; i < w.size(); ++i) sum += w[i] * x(sample, i / kOut);
  };
  add(weights.at("w"), [](uint64_t sample, uint64_t i) { return Scenes::pixel(sample, i) / 255.0; });
  add(weights.at("v"), [](uint64_t sample, uint64_t i) { return static_cast<double>(Scenes::number(sample, i)); });
  return sum;
}

// The evaluation loss, and whether all ranks have all of it.
double evaluate(const program::Program& p, const kernels::KernelSet& set) {
  const Scenes source;
  evaluate::require_inputs({&p, 1}, program::Step::evaluate, source.parts());
  std::mutex one_at_a_time;
  double sum = 0;
  comm::run_ranks(comm::thread_worlds(static_cast<int>(p.mesh.ranks())), [&](comm::World& world) {
    base::ThreadTeam team(1);
    run::Executor executor(p, set, team, &world);
    executor.initialize(7);
    const run::Executor::RowRange mine = executor.input_rows(program::Step::evaluate);
    BatchMemory batch(mine.last - mine.first, source.parts());
    kernels::Numbers numbers;
    executor.run(program::Step::evaluate, numbers, [&](const run::Executor::Inputs& inputs) {
      source.fill(static_cast<uint64_t>(mine.first), batch.view());
      evaluate::set_inputs(inputs, batch.view(), mine.first);
    });
    const std::lock_guard lock(one_at_a_time);
    sum += executor.number("loss");  // partial on both ranks
  });
  return sum;
}

std::string error_of(const auto& f) {
  try {
    f();
  } catch (const base::InternalError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(SeamsBatch, TrainsAndEvaluatesOnOneRankAndOnTwo) {
  const WithBrightness set(kernels::reference_kernels());
  const Scenes source;
  for (const auto& [ranks, rule] :
       std::vector<std::pair<int64_t, std::string>>{{1, ""}, {2, "batch -> axis"}, {2, "height -> axis"}}) {
    SCOPED_TRACE(fmt::format("{} {}", ranks, rule));
    const std::vector<program::Program> programs = programs_of(set, ranks, rule);
    ASSERT_EQ(programs.size(), 1u);
    evaluate::require_inputs(programs, program::Step::train, source.parts());
    // Rows read ahead, in the order of micro-batches.
    const auto [before, after] = weights_of_a_step(programs[0], set, [&](const run::Executor::Inputs& inputs) {
      samples::Loader loader(source, {.share = {.global_batch = 2 * kBatch, .micro_batch = kBatch}, .end_step = 1});
      const samples::Loader::Item* item = &loader.next();
      while (item->micro_batch < inputs.micro_batch()) item = &loader.next();
      evaluate::set_inputs(inputs, item->batch, 0);
    });
    for (const auto& [name, values] : after)
      for (size_t i = 0; i < values.size(); ++i) {
        double gradient = 0;
        for (uint64_t sample = 0; sample < 2 * kBatch; ++sample)
          gradient += name == "w" ? Scenes::pixel(sample, i / kOut) / 255.0 : Scenes::number(sample, i / kOut);
        EXPECT_NEAR(values[i], before.at(name)[i] - 0.1 * gradient, 1e-5) << name << " " << i;
      }
    EXPECT_NEAR(evaluate(programs[0], set), loss_by_hand(before), 1e-3);
  }
}

TEST(SeamsBatch, InputsAndPartsAreTheSame) {
  const WithBrightness set(kernels::reference_kernels());
  const std::vector<program::Program> programs = programs_of(set, 1, "");
  const auto require = [&](const Parts& parts) {
    return error_of([&] { evaluate::require_inputs(programs, program::Step::train, parts); });
  };
  Parts parts = Scenes().parts();
  const Part pixels = parts[0], grid = parts[1];
  EXPECT_EQ(require(parts), "no error");
  EXPECT_EQ(require({pixels}),
            "[run] internal error: train reads grid fp32 [6 2], and a batch holds pixels uint8 [3 6 5]");
  Part narrow = grid;
  narrow.shape = {2, 6};
  EXPECT_EQ(
      require({pixels, narrow}),
      "[run] internal error: train reads grid fp32 [6 2], and a batch holds pixels uint8 [3 6 5], grid fp32 [2 6]");
  Part wide = pixels;
  wide.dtype = DType::f32;
  EXPECT_EQ(
      require({wide, grid}),
      "[run] internal error: train reads pixels uint8 [3 6 5], and a batch holds pixels fp32 [3 6 5], grid fp32 [6 2]");
  parts.push_back({.name = "mask", .dtype = DType::u8, .shape = {kHeight, kWidth}});
  EXPECT_EQ(require(parts), "[run] internal error: train does not read mask uint8 [6 5] of a batch");
  parts.back().optional = true;
  EXPECT_EQ(require(parts), "no error");
}

TEST(SeamsBatch, EveryInputIsSet) {
  const WithBrightness set(kernels::reference_kernels());
  const std::vector<program::Program> programs = programs_of(set, 1, "");
  base::ThreadTeam team(1);
  run::Executor executor(programs[0], set, team);
  const auto run = [&](const auto& fill) {
    return error_of([&] {
      kernels::Numbers numbers;
      executor.run(program::Step::evaluate, numbers, fill);
    });
  };
  const std::vector<uint8_t> pixels(kBatch * kChannels * kHeight * kWidth);
  const std::vector<float> grid(kBatch * kHeight * kColumns);
  const std::byte zero{};
  const auto set_pixels = [&](const run::Executor::Inputs& inputs) {
    inputs.set("pixels", {DType::u8, std::as_bytes(std::span(pixels)), 0, kChannels * kHeight * kWidth, {&zero, 1}});
  };
  EXPECT_EQ(run(set_pixels), "[run] internal error: input \"grid\" of the list of calls \"evaluate\" was not set");
  EXPECT_EQ(run([&](const run::Executor::Inputs& inputs) {
              set_pixels(inputs);
              inputs.set("grid", {grid, 0, kHeight * kColumns}, 0.0f);
              inputs.set("mask", {grid, 0, kHeight * kColumns}, 0.0f);
            }),
            "[run] internal error: the list of calls \"evaluate\" has no input \"mask\"");
  EXPECT_EQ(run([&](const run::Executor::Inputs& inputs) {
              inputs.set("pixels", {grid, 0, 12}, 0.0f);
            }),
            "[run] internal error: input \"pixels\" has 90 elements of uint8 in a row, and is set to 12 of fp32");
  EXPECT_EQ(run([&](const run::Executor::Inputs& inputs) {
              set_pixels(inputs);
              inputs.set("grid", {grid, 1, kHeight * kColumns}, 0.0f);
            }),
            "[run] internal error: row 0 of input \"grid\" was not given");
  EXPECT_EQ(run([&](const run::Executor::Inputs& inputs) {
              set_pixels(inputs);
              inputs.set("grid", {grid, 0, kHeight * kColumns}, 0.0f);
            }),
            "no error");
}

}  // namespace kintsugi::tests::seams_batch_test
