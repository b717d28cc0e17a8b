#include "kintsugi/lower/order/schedule.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::schedule_test {
namespace {

std::string calls(const program::Program& p) {
  std::string t;
  for (const program::CallList& list : p.lists) {
    t += fmt::format("{}:", name_of(list.step));
    for (const program::Call& c : list.calls)
      t += fmt::format(" {}({})", p.bodies[static_cast<size_t>(c.body)].name, c.micro_batch);
    t += "\n";
  }
  return t;
}

const Shape kX = {{"embed", 4}};

}  // namespace

TEST(Schedule, TheFirstMicroBatchReplacesAndTheOthersAdd) {
  Maker m;
  const BufferId x = m.arena("x", kX), loss = m.state("loss", {}, program::StateKind::statistic),
                 count = m.state("count", {}, program::StateKind::statistic);
  const BufferId table = m.state("table.g", kX, program::StateKind::gradient),
                 w = m.state("w.g", kX, program::StateKind::gradient), weight = m.state("w", kX);
  m.body("forward");
  m.call("cross_entropy", {x}, {loss, count}, 0, 0b11);
  m.body("backward");
  m.call("contract", {x}, {table}, 0, 1);             // the head's use of a tied table
  m.call("contract", {x}, {m.view("w.g", w)}, 0, 1);  // the same memory under other dims
  m.call("gelu", {x}, {x});
  m.call("embedding_grad", {x}, {table}, 0, 1);  // and the embedding's
  m.call("contract", {x}, {w}, 0, 1);
  m.body("update");
  m.call("accumulate", {x}, {weight});
  m.body("evaluate");
  m.call("cross_entropy", {x}, {loss, count}, 0, 0b11);
  schedule(m.p, plan::make_schedule("1f1b", 1, 1, 3));
  EXPECT_EQ(text(m.p),
            "forward:\n  +loss, +count = cross_entropy(x)\n"
            "backward:\n  +table.g = contract(x)\n  +w.g = contract(x)\n  x = gelu(x)\n  +table.g = "
            "embedding_grad(x)\n  +w.g = contract(x)\n"
            "update:\n  w = accumulate(x)\n"
            "evaluate:\n  +loss, +count = cross_entropy(x)\n"
            "forward.first:\n  loss, count = cross_entropy(x)\n"
            "backward.first:\n  table.g = contract(x)\n  w.g = contract(x)\n  x = gelu(x)\n  +table.g = "
            "embedding_grad(x)\n  +w.g = contract(x)\n");
  EXPECT_EQ(calls(m.p),
            "train: forward.first(0) backward.first(0) forward(1) backward(1) forward(2) backward(2) update(-1)\n"
            "evaluate: evaluate(0)\n");
}

// Backward adds to what forward stored.
TEST(Schedule, OneAccumulatorInBothBodies) {
  Maker m;
  const BufferId x = m.arena("x", kX), g = m.state("g", kX, program::StateKind::gradient);
  for (const char* name : {"forward", "backward", "update"}) {
    m.body(name);
    m.call("accumulate", {x}, {g}, 0, 1);
  }
  schedule(m.p, plan::make_schedule("1f1b", 1, 1, 1));
  EXPECT_EQ(calls(m.p), "train: forward.first(0) backward.only(0) update(-1)\n");
  EXPECT_EQ(text(m.p).substr(text(m.p).find("forward.first")),
            "forward.first:\n  g = accumulate(x)\nbackward.only:\n  +g = accumulate(x)\n");
}

// Each reduction of an accumulator is placed after its last addition, only for the last micro-batch.
TEST(Schedule, AccumulatorsAreReducedOnceAStep) {
  const auto make = [](int64_t micro_batches) {
    Maker m;
    m.p.mesh = mesh::Mesh({{.name = "data", .size = 2}});
    const BufferId x = m.arena("x", kX), g = m.state("g", kX, program::StateKind::gradient),
                   h = m.state("h", kX, program::StateKind::gradient), part = m.arena("part", {{"embed", 2}});
    m.body("forward");
    m.call("gelu", {x}, {x});
    m.body("backward");
    m.call("accumulate", {x}, {h}, 1, 1);
    m.call("gelu", {x}, {x}, 1);
    m.call("accumulate", {x}, {m.view("g", g)}, 1, 1);  // under another name
    m.call("gelu", {x}, {x}, 0);
    m.call("accumulate", {x}, {h}, 0, 1);
    m.call("gelu", {x}, {x}, 0);
    m.body("update");
    m.body("reduce");
    m.collective(program::Collective::all_reduce, {h}, {h}, -1).group = {0};
    m.collective(program::Collective::reduce_scatter, {g}, {part}, -1).group = {0};
    schedule(m.p, plan::make_schedule("1f1b", 1, 1, micro_batches));
    return m.p;
  };
  const program::Program three = make(3);
  EXPECT_EQ(calls(three),
            "train: forward.first(0) backward.first(0) forward(1) backward(1) forward(2) backward.last(2) "
            "update(-1)\n");
  EXPECT_EQ(text(three).substr(text(three).find("backward.first")),
            "backward.first:\n  h = accumulate(x)\n  x = gelu(x)\n  g = accumulate(x)\n  x = gelu(x)\n  +h = "
            "accumulate(x)\n  x = gelu(x)\n"
            "backward.last:\n  +h = accumulate(x)\n  x = gelu(x)\n  +g = accumulate(x)\n"
            "  part = reduce_scatter over data(g)\n  x = gelu(x)\n  +h = accumulate(x)\n"
            "  h = all_reduce over data(h)\n  x = gelu(x)\n");
  const program::Program one = make(1);
  EXPECT_EQ(calls(one), "train: forward.first(0) backward.only(0) update(-1)\n");
  EXPECT_EQ(text(one).substr(text(one).find("backward.only")),
            "backward.only:\n  h = accumulate(x)\n  x = gelu(x)\n  g = accumulate(x)\n"
            "  part = reduce_scatter over data(g)\n  x = gelu(x)\n  +h = accumulate(x)\n"
            "  h = all_reduce over data(h)\n  x = gelu(x)\n");
}

// A pass does not wait for a sum where it is made: its cast comes with the next layer's sums, its addition before the
// update.
TEST(Schedule, WhatNeedsASumComesLater) {
  Maker m;
  m.p.mesh = mesh::Mesh({{.name = "data", .size = 2}, {.name = "tensor", .size = 2}});
  const BufferId x = m.arena("x", kX), g = m.state("g", kX, program::StateKind::gradient),
                 h = m.state("h", kX, program::StateKind::gradient), w = m.state("w", kX),
                 part = m.arena("part", {{"embed", 2}}), wide = m.arena("wide", {{"embed", 2}}),
                 whole = m.arena("whole", {{"embed", 2}});
  m.body("backward");
  m.call("accumulate", {x}, {g}, 1, 1);
  m.call("accumulate", {x}, {h}, 0, 1);
  m.body("update");
  m.call("accumulate", {whole}, {w});
  m.body("reduce");
  m.collective(program::Collective::reduce_scatter, {g}, {part}, 1).group = {0};
  m.call("accumulate", {part}, {wide}, 1);
  m.collective(program::Collective::all_reduce, {wide}, {whole}, 1).group = {1};
  m.call("gelu", {whole}, {whole}, 1);
  m.collective(program::Collective::all_reduce, {h}, {h}, 0).group = {0};
  schedule(m.p, plan::make_schedule("1f1b", 1, 1, 2));
  EXPECT_EQ(text(m.p).substr(text(m.p).find("backward.last")),
            "backward.last:\n  +g = accumulate(x)\n  part = reduce_scatter over data(g)\n  +h = accumulate(x)\n"
            "  wide = accumulate(part)\n  h = all_reduce over data(h)\n");
  const std::string update =
      "update:\n  whole = all_reduce over tensor(wide)\n  whole = gelu(whole)\n  w = accumulate(whole)\n";
  EXPECT_NE(text(m.p).find(update), std::string::npos) << text(m.p);
}

// Sums of micro-batches in a binary tree: each waits at its level for another one, and the last is the total.
TEST(Schedule, ABinaryTree) {
  Maker m;
  const BufferId x = m.arena("x", kX), g = m.state("g", kX, program::StateKind::gradient),
                 g0 = m.state("g.0", kX, program::StateKind::level), g1 = m.state("g.1", kX, program::StateKind::level);
  m.body("forward");
  m.call("gelu", {x}, {x});
  m.body("backward");
  m.call("accumulate", {x}, {g, g0, g1}).adds_in_tree = true;
  m.body("update");
  m.body("reduce");
  program::Instruction& sum = m.collective(program::Collective::all_reduce, {g}, {g});
  m.p.mesh = mesh::Mesh({{.name = "data", .size = 2}});
  sum.group = {0};
  schedule(m.p, plan::make_schedule("1f1b", 1, 1, 4));
  EXPECT_EQ(calls(m.p),
            "train: forward.tree0(0) backward.tree0(0) forward.tree1(1) backward.tree1(1) forward.tree0(2) "
            "backward.tree0(2) forward.tree2(3) backward.tree2.last(3) update(-1)\n");
  EXPECT_EQ(text(m.p).substr(text(m.p).find("forward.tree0")),
            "forward.tree0:\n"
            "  x = gelu(x)\n"
            "backward.tree0:\n"
            "  g.0 = accumulate(x)\n"
            "forward.tree1:\n"
            "  x = gelu(x)\n"
            "backward.tree1:\n"
            "  +x = accumulate(g.0)\n"
            "  g.1 = accumulate(x)\n"
            "forward.tree2:\n"
            "  x = gelu(x)\n"
            "backward.tree2.last:\n"
            "  +x = accumulate(g.0)\n"
            "  +x = accumulate(g.1)\n"
            "  g = accumulate(x)\n"
            "  g = all_reduce over data(g)\n");
}

TEST(Schedule, OnlyTheBodiesThatThereAre) {
  Maker m;
  for (const char* name : {"decode", "prefill"}) m.body(name);
  schedule(m.p, plan::make_schedule("1f1b", 1, 1, 5));
  EXPECT_EQ(calls(m.p), "prefill: prefill(0)\ndecode: decode(0)\n");
  EXPECT_EQ(m.p.bodies.size(), 2u);
}

}  // namespace kintsugi::lower::schedule_test
