#include "kintsugi/lower/memory/move_gradients.h"

#include <gtest/gtest.h>

#include <map>

#include "kintsugi/lower/memory/live_ranges.h"
#include "kintsugi/lower/memory/memory.h"
#include "kintsugi/lower/order/schedule.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/program/verify.h"

namespace kintsugi::lower::move_gradients_test {
namespace {

using program::Region;

// The forward pass keeps a value of each layer, from which the backward pass computes the gradient of its weight.
struct Step : Maker {
  static constexpr int kLayers = 4;
  static constexpr int64_t kBytes = 64;  // of each buffer
  std::vector<BufferId> weights, gradients;

  explicit Step(int64_t micro_batches) {
    const Shape shape = {{"n", kBytes / 4}};
    std::vector<BufferId> kept;
    for (int layer = 0; layer < kLayers; ++layer) {
      weights.push_back(state(fmt::format("w{}", layer), shape));
      gradients.push_back(state(fmt::format("g{}", layer), shape, program::StateKind::gradient));
      kept.push_back(arena(fmt::format("kept{}", layer), shape));
    }
    body("forward");
    for (int layer = 0; layer < kLayers; ++layer) call("gelu", {weights[at(layer)]}, {kept[at(layer)]}, layer);
    body("backward");
    for (int layer = kLayers; layer-- > 0;) call("gelu", {kept[at(layer)]}, {gradients[at(layer)]}, layer, 1);
    body("update");
    for (int layer = 0; layer < kLayers; ++layer)
      call("add", {weights[at(layer)], gradients[at(layer)]}, {weights[at(layer)]}, layer);
    schedule(p, plan::make_schedule("1f1b", 1, 1, micro_batches));
  }
  static size_t at(int layer) { return static_cast<size_t>(layer); }
  const program::Buffer& of(BufferId b) const { return p.buffer(b); }
  std::string moved() {
    move_gradients(p, ops::operations());
    return text(p);
  }
};

TEST(MoveGradients, LiveFromTheirFirstWriteToTheEndOfTheStep) {
  Step m(1);
  const std::string before = text(m.p);
  EXPECT_EQ(m.moved(), before);  // what is written whole needs no zeros
  for (const BufferId w : m.weights) EXPECT_EQ(m.of(w).region, Region::state);
  const Instructions list = instructions_of(m.p, bodies_of_last_micro_batch(m.p.lists[0]));
  const std::vector<LiveRange> live = live_ranges(m.p, list);
  for (int layer = 0; layer < Step::kLayers; ++layer) {
    const BufferId g = m.gradients[Step::at(layer)];
    EXPECT_EQ(m.of(g).region, Region::arena);
    EXPECT_EQ(live[static_cast<size_t>(g)].begin, 2 * Step::kLayers - 1 - layer);
    EXPECT_EQ(live[static_cast<size_t>(g)].end, 3 * Step::kLayers);
  }
}

// Each takes the place of what the next layer has kept.
TEST(MoveGradients, TakeThePlacesOfActivations) {
  Step one(1), several(2);
  one.moved();
  several.moved();
  for (Step* m : {&one, &several}) {
    plan_memory(m->p, ops::operations());
    program::verify(m->p);
  }
  constexpr int64_t kLayers = Step::kLayers * Step::kBytes;
  EXPECT_EQ(one.p.state_bytes, kLayers);
  EXPECT_EQ(one.p.arena_bytes, kLayers + Step::kBytes);
  EXPECT_EQ(several.p.state_bytes, 2 * kLayers);
  EXPECT_EQ(several.p.arena_bytes, kLayers);
  const program::MemoryTable t = program::memory_table(one.p), of_several = program::memory_table(several.p);
  EXPECT_EQ(t.gradients, 0);
  EXPECT_GT(t.live_gradients, 0);
  EXPECT_EQ(t.live_gradients + t.activations, kLayers + Step::kBytes);
  EXPECT_EQ(t.total(), one.p.bytes());
  EXPECT_EQ(of_several.gradients, kLayers);
  EXPECT_EQ(of_several.live_gradients, 0);
}

TEST(MoveGradients, OfSeveralMicroBatchesStay) {
  Step m(2);
  const std::string before = text(m.p);
  EXPECT_EQ(m.moved(), before);
  for (const BufferId g : m.gradients) {
    EXPECT_EQ(m.of(g).region, Region::state);
    EXPECT_EQ(m.of(g).output, "");
  }
}

// A bucket with two parameters of 3 elements, each in a block of 8: the update reads the gaps, which nothing else
// writes. The second is added to once more afterwards.
TEST(MoveGradients, WhatNothingReplacesIsZero) {
  Maker m;
  const BufferId g = m.state("g", {{"n", 16}}, program::StateKind::gradient), x = m.arena("x", {{"n", 3}}),
                 norm = m.arena("norm", {}, DType::f64);
  const auto member = [&](const std::string& name, int64_t first) {
    const BufferId b = m.view(name, g);
    m.p.buffer(b).type.shape = {{"n", 3}};
    m.p.buffer(b).shift = 4 * first;
    return b;
  };
  const BufferId a = member("a", 0), b = member("b", 8);
  m.body("backward");
  m.call("fill", {}, {x});
  m.call("gelu", {x}, {b}, 3, 1);
  m.call("gelu", {x}, {a}, 2, 1);
  m.call("gelu", {x}, {b}, 1, 1);
  m.body("update");
  m.call("sum_squares", {g}, {norm});
  schedule(m.p, plan::make_schedule("1f1b", 1, 1, 1));
  move_gradients(m.p, ops::operations());
  const program::Body& only = m.p.bodies.back();
  ASSERT_EQ(only.name, "backward.only");
  ASSERT_EQ(only.instructions.size(), 5u);
  const program::Instruction& zeros = only.instructions[1];
  EXPECT_EQ(zeros.kernel, "fill");
  EXPECT_EQ(zeros.layer, 3);
  std::map<int64_t, int64_t> gaps;  // bytes
  for (const BufferId gap : zeros.outs) {
    EXPECT_EQ(m.p.root(gap), g);
    gaps[m.p.begin(gap, 0)] = m.p.buffer(gap).bytes();
  }
  EXPECT_EQ(gaps, (std::map<int64_t, int64_t>{{12, 20}, {44, 20}}));
  EXPECT_EQ(zeros.cost.memory_bytes, 40);
  plan_memory(m.p, ops::operations());
  program::verify(m.p);
}

}  // namespace
}  // namespace kintsugi::lower::move_gradients_test
