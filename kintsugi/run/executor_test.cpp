#include "kintsugi/run/executor.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/run/host_memory.h"

namespace kintsugi::run::executor_test {
namespace {

using program::BufferId;
using program::Region;
using tensor::DType;
using tensor::Shape;

constexpr int64_t kWide = 3001;  // more than a share of a thread

// A hand-made program of states, inputs and outputs, and a few instructions.
struct Hand {
  program::Program p;

  BufferId buffer(const std::string& name, Shape shape, DType dtype, Region region) {
    int64_t& end = region == Region::state ? p.state_bytes : p.arena_bytes;
    p.buffers.push_back({.name = name, .type = {std::move(shape), dtype}, .region = region, .offset = end});
    end += p.aligned(p.buffers.back().bytes());
    return static_cast<BufferId>(p.buffers.size()) - 1;
  }
  BufferId state(const std::string& name, Shape shape, DType dtype, tensor::Init init,
                 program::StateKind kind = program::StateKind::weight) {
    const BufferId b = buffer(name, std::move(shape), dtype, Region::state);
    p.states.push_back({.name = name, .buffer = b, .kind = kind, .whole = p.buffer(b).type, .init = init});
    return b;
  }
  BufferId arena(const std::string& name, Shape shape, DType dtype = DType::f32) {
    return buffer(name, std::move(shape), dtype, Region::arena);
  }
};

tensor::Init normal(double deviation) {
  return {tensor::Init::Kind::normal, deviation};
}

tensor::Init constant(double value) {
  return {tensor::Init::Kind::constant, value};
}

struct Machine {
  explicit Machine(program::Program p, int threads = 2)
      : kernels(kernels::reference_kernels()), team(threads), executor(std::move(p), *kernels, team) {}

  std::unique_ptr<kernels::KernelSet> kernels;
  base::ThreadTeam team;
  Executor executor;
};

std::string error_of(const std::function<void()>& f) {
  try {
    f();
  } catch (const std::exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace

// The numbers are from an independent program in another language: Philox4x32-10 keyed by FNV-1a of the name and the
// seed, two normal numbers per four words. They must never change, since runs are reproduced by their seed.
TEST(Initialize, AFunctionOfSeedNameAndIndex) {
  Hand h;
  h.state("w", {{"a", kWide}}, DType::f64, normal(0.5));
  h.state("v", {{"a", 1}}, DType::f64, normal(1.0));
  h.state("layer0.ffn.up.weight", {{"a", 2}, {"b", 3}}, DType::f32, normal(0.02));
  Machine m(h.p);
  m.executor.initialize(1);
  const auto w = m.executor.state("w").as<double>();
  EXPECT_NEAR(w[0], 0.5 * 1.328941833808465, 1e-14);
  EXPECT_NEAR(w[1], 0.5 * 0.26270623698374673, 1e-14);
  EXPECT_NEAR(w[2], 0.5 * 0.2776724790891469, 1e-14);
  EXPECT_NEAR(w[3000], 0.5 * -1.3897895847886026, 1e-14);
  EXPECT_NEAR(m.executor.state("v").as<double>()[0], -1.3943050169049234, 1e-14);
  EXPECT_EQ(m.executor.state("layer0.ffn.up.weight").as<float>()[5], static_cast<float>(0.02 * -1.0024956724825442));
  const std::vector<double> before(w.begin(), w.end());
  m.executor.initialize(7);
  EXPECT_NEAR(w[0], 0.5 * -0.2868446737186038, 1e-14);
  m.executor.initialize(1);
  EXPECT_EQ(before, std::vector<double>(w.begin(), w.end()));
  Machine one(h.p, 1);
  one.executor.initialize(1);
  const auto same = one.executor.state("w").as<double>();
  EXPECT_EQ(before, std::vector<double>(same.begin(), same.end()));

  double mean = 0, square = 0;
  for (double x : before) mean += x / kWide, square += x * x / kWide;
  EXPECT_NEAR(mean, 0.0, 4 * 0.5 / std::sqrt(kWide));
  EXPECT_NEAR(square, 0.25, 4 * 0.25 * std::sqrt(2.0 / kWide));
}

// The master weight is the number before rounding.
TEST(Initialize, AMasterIsItsWeightBeforeRounding) {
  for (const DType narrow : {DType::bf16, DType::f16}) {
    Hand h;
    h.state("w", {{"a", kWide}}, narrow, normal(0.02));
    h.state("w.master", {{"a", kWide}}, DType::f32, normal(0.02), program::StateKind::optimizer);
    h.p.states.back().weight = "w";
    h.p.states.back().part = program::OptimizerPart::master;
    h.state("wide", {{"a", kWide}}, DType::f32, normal(0.02));
    Machine m(h.p);
    m.executor.initialize(1);
    const auto master = m.executor.state("w.master").as<float>();
    int rounded = 0;
    tensor::dispatch(narrow, [&]<typename T>(T) {
      if constexpr (sizeof(T) == 2) {
        const auto w = m.executor.state("w").as<T>();
        for (size_t i = 0; i < w.size(); ++i) {
          ASSERT_EQ(w[i].bits, T(master[i]).bits) << i;
          rounded += static_cast<float>(w[i]) != master[i];
        }
      }
    });
    EXPECT_GT(rounded, kWide * 9 / 10);
    EXPECT_NE(master[0], m.executor.state("wide").as<float>()[0]);  // another name, other numbers
  }
}

TEST(Initialize, ConstantsAndZeros) {
  Hand h;
  h.state("gamma", {{"a", 3}}, DType::bf16, constant(1.0));
  h.state("beta", {{"a", 3}}, DType::f32, constant(0.0));
  h.state("scale", {}, DType::f64, constant(64.0), program::StateKind::statistic);
  Machine m(h.p);
  m.executor.state("beta").as<float>()[1] = 5;
  m.executor.initialize(1);
  for (tensor::bf16 x : m.executor.state("gamma").as<tensor::bf16>()) EXPECT_EQ(static_cast<float>(x), 1.0f);
  for (float x : m.executor.state("beta").as<float>()) EXPECT_EQ(x, 0.0f);
  EXPECT_EQ(m.executor.number("scale"), 64.0);
}

TEST(Executor, InputsOutputsAndNumbers) {
  Hand h;
  const BufferId total = h.state("total", {}, DType::f64, constant(0.0), program::StateKind::statistic);
  const BufferId x = h.arena("x", {{"batch", 2}, {"a", 3}}, DType::f64),
                 y = h.arena("y", {{"batch", 2}, {"a", 3}}, DType::f64);
  h.p.buffer(x).input = "x";
  h.p.buffer(y).output = "y";
  const auto sum = [&](uint32_t adds) {
    return program::Instruction{.kernel = "sum", .ins = {y}, .outs = {total}, .accumulate = adds};
  };
  const program::Instruction twice = {.kernel = "scale", .ins = {x}, .outs = {y}, .attributes = {{"by", 2.0}}};
  h.p.bodies = {{.name = "first", .instructions = {twice, sum(0)}}, {.name = "next", .instructions = {twice, sum(1)}}};
  h.p.lists = {{.step = program::Step::train, .calls = {{0, 0}, {1, 1}, {1, 2}}}};
  Machine m(h.p);
  EXPECT_EQ(m.executor.allocated_bytes(), h.p.bytes());
  EXPECT_TRUE(m.executor.has_input(program::Step::train, "x"));
  EXPECT_FALSE(m.executor.has_input(program::Step::train, "y"));
  EXPECT_TRUE(m.executor.has_state("total"));
  EXPECT_FALSE(m.executor.has_state("x"));
  std::vector<int64_t> asked;
  std::vector<std::string> watched;
  m.executor.watch = [&](const Executor::Watched& w) { watched.push_back(w.body.name + "." + w.instruction.kernel); };
  kernels::Numbers numbers;
  m.executor.set_number("total", 1000);  // the first replaces it
  m.executor.run(program::Step::train, numbers, [&](const Executor::Inputs& inputs) {
    asked.push_back(inputs.micro_batch());
    for (double& v : inputs.view("x").as<double>()) v = static_cast<double>(inputs.micro_batch() + 1);
  });
  EXPECT_EQ(asked, (std::vector<int64_t>{0, 1, 2}));
  EXPECT_EQ(m.executor.number("total"), 2.0 * 6 * (1 + 2 + 3));
  EXPECT_EQ(m.executor.output(program::Step::train, "y").as<double>()[5], 6.0);
  EXPECT_EQ(watched,
            (std::vector<std::string>{"first.scale", "first.sum", "next.scale", "next.sum", "next.scale", "next.sum"}));
  EXPECT_EQ(error_of([&] { m.executor.state("loss"); }), "[run] internal error: no state \"loss\"");
  EXPECT_EQ(error_of([&] {
              m.executor.run(program::Step::train, numbers, [](const Executor::Inputs& inputs) { inputs.view("z"); });
            }),
            "[run] internal error: a call of train has no input \"z\"");
  EXPECT_EQ(error_of([&] { m.executor.output(program::Step::train, "x"); }),
            "[run] internal error: train has no output \"x\"");
  EXPECT_EQ(error_of([&] { m.executor.run(program::Step::evaluate, numbers, [](const auto&) {}); }),
            "[run] internal error: no list of calls \"evaluate\"");
  h.p.bodies[0].instructions[0].kernel = "scales";
  EXPECT_EQ(error_of([&] { Machine bad(h.p); }),
            "[kernels] internal error: the reference set has no kernel \"scales\"");
}

// The index of `seq` starts at the run's position if the body requires it, otherwise at 0.
TEST(Executor, SeqBeginsAtThePosition) {
  Hand h;
  const BufferId table = h.state("table", {{"position", 6}, {"embed", 1}}, DType::f32, constant(0.0)),
                 y = h.arena("y", {{"seq", 2}, {"embed", 1}});
  h.p.buffer(y).output = "y";
  const program::Instruction rows = {
      .kernel = "position", .ins = {table}, .outs = {y}, .attributes = {{"length", int64_t{2}}}};
  h.p.bodies = {{.name = "decode", .position_dim = "seq", .instructions = {rows}},
                {.name = "evaluate", .instructions = {rows}}};
  h.p.lists = {{.step = program::Step::decode, .calls = {{0, 0}}},
               {.step = program::Step::evaluate, .calls = {{1, 0}}}};
  Machine m(h.p);
  for (int i = 0; i < 6; ++i)
    m.executor.state("table").as<float>()[static_cast<size_t>(i)] = static_cast<float>(10 * i);
  kernels::Numbers numbers = {.position = 3};
  m.executor.run(program::Step::decode, numbers, [](const auto&) {});
  EXPECT_EQ(m.executor.output(program::Step::decode, "y").as<float>()[0], 30.0f);
  EXPECT_EQ(m.executor.output(program::Step::decode, "y").as<float>()[1], 40.0f);
  m.executor.run(program::Step::evaluate, numbers, [](const auto&) {});
  EXPECT_EQ(m.executor.output(program::Step::evaluate, "y").as<float>()[1], 10.0f);
  m.executor.run(program::Step::decode, numbers, [&](const auto&) { numbers.position = 1; });  // set as inputs are
  EXPECT_EQ(m.executor.output(program::Step::decode, "y").as<float>()[0], 10.0f);
}

TEST(Arena, MoreThanThereIs) {
  EXPECT_EQ(error_of([] { Arena arena(int64_t{1} << 60); }),
            "[run] cannot allocate the 1.0 EiB that the program needs; a smaller train.micro_batch needs less");
  EXPECT_EQ(Arena(0).data(), nullptr);
  const Arena arena(1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(arena.data()) % 4096, 0u);
  EXPECT_EQ(arena.data()[(1 << 20) - 1], std::byte{0});
}

}  // namespace kintsugi::run::executor_test
