#include "kintsugi/lower/schedule.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower {
namespace {

std::string calls(const program::Program& p) {
  std::string t;
  for (const program::CallList& list : p.lists) {
    t += list.name + ":";
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
  const BufferId x = m.arena("x", kX), loss = m.state("loss", {}, "statistic"),
                 count = m.state("count", {}, "statistic");
  const BufferId table = m.state("table.g", kX, "gradient"), w = m.state("w.g", kX, "gradient"),
                 weight = m.state("w", kX);
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
  schedule(m.p, 3);
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

// What forward has replaced, backward adds to.
TEST(Schedule, OneAccumulatorInBothBodies) {
  Maker m;
  const BufferId x = m.arena("x", kX), g = m.state("g", kX, "gradient");
  for (const char* name : {"forward", "backward", "update"}) {
    m.body(name);
    m.call("accumulate", {x}, {g}, 0, 1);
  }
  schedule(m.p, 1);
  EXPECT_EQ(calls(m.p), "train: forward.first(0) backward.first(0) update(-1)\n");
  EXPECT_EQ(text(m.p).substr(text(m.p).find("forward.first")),
            "forward.first:\n  g = accumulate(x)\nbackward.first:\n  +g = accumulate(x)\n");
}

TEST(Schedule, OnlyTheBodiesThatThereAre) {
  Maker m;
  for (const char* name : {"decode", "prefill"}) m.body(name);
  schedule(m.p, 5);
  EXPECT_EQ(calls(m.p), "prefill: prefill(0)\ndecode: decode(0)\n");
  EXPECT_EQ(m.p.bodies.size(), 2u);
}

}  // namespace kintsugi::lower
