// Additions and assignments to states, fused into the producer.
#include "kintsugi/lower/fuse/fuse_test.h"

namespace kintsugi::lower::fuse_test {

TEST(Fuse, AGradientIsAddedWhereItIsMade) {
  Gradient m;
  m.call("contract", {m.x, m.dy}, {m.g});
  m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
  EXPECT_EQ(fused(m), "backward:\n  +w.g = contract(x, dy)\n");
}

// A matmul rounds its sum once, to a narrower state; its bytes shrink.
TEST(Fuse, AProductIsAddedToANarrowState) {
  for (const uint32_t adds : {0u, 1u}) {
    Gradient m;
    const BufferId narrow = m.state("n.g", kW, program::StateKind::gradient, DType::bf16);
    m.call("contract", {m.x, m.dy}, {m.g}).cost.memory_bytes = 200;
    m.call("accumulate", {m.g}, {narrow}, 0, adds);
    EXPECT_EQ(fused(m), adds ? "backward:\n  +n.g = contract(x, dy)\n" : "backward:\n  n.g = contract(x, dy)\n");
    EXPECT_EQ(m.p.bodies[0].instructions[0].cost.memory_bytes, 200 - 12 * 2);
  }
}

// The second of two outputs; the other is unchanged.
TEST(Fuse, OneOutputOfTwo) {
  Gradient m;
  const BufferId dx = m.arena("dx", kX), dgamma = m.arena("dgamma", {{"embed", 4}}),
                 state = m.state("gamma.g", {{"embed", 4}}, program::StateKind::gradient);
  m.call("rms_norm_grad", {m.x, m.arena("gamma", {{"embed", 4}}), m.x}, {dx, dgamma});
  m.call("accumulate", {dgamma}, {state}, 0, 1);
  EXPECT_EQ(fused(m), "backward:\n  dx, +gamma.g = rms_norm_grad(x, gamma, x)\n");
  Gradient n;  // dx itself can be assigned, but not added
  n.call("rms_norm_grad", {n.x, n.arena("gamma", {{"embed", 4}}), n.x},
         {n.arena("dx", kX), n.arena("dgamma", {{"embed", 4}})});
  n.call("accumulate", {n.p.bodies[0].instructions[0].outs[0]}, {n.state("sum", kX, program::StateKind::gradient)}, 0,
         1);
  EXPECT_EQ(fused(n), "backward:\n  dx, dgamma = rms_norm_grad(x, gamma, x)\n  +sum = accumulate(dx)\n");
}

TEST(Fuse, AnAdditionStays) {
  const Case<Gradient> cases[] = {
      {"the gradient is used again",
       [](Gradient& m) {
         m.call("contract", {m.x, m.dy}, {m.g});
         m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
         m.call("sum_squares", {m.g}, {m.arena("n", {{"block", 1}}, DType::f64)});
       },
       "  g = contract(x, dy)\n  +w.g = accumulate(g)\n  n = sum_squares(g)\n"},
      {"it is of another layer",
       [](Gradient& m) {
         m.call("contract", {m.x, m.dy}, {m.g}, 3);
         m.call("accumulate", {m.g}, {m.state_g}, -1, 1);
       },
       "  g = contract(x, dy)\n  +w.g = accumulate(g)\n"},
      {"the state is read in between",
       [](Gradient& m) {
         m.call("contract", {m.x, m.dy}, {m.g});
         m.call("sum_squares", {m.state_g}, {m.arena("n", {{"block", 1}}, DType::f64)});
         m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
       },
       "  g = contract(x, dy)\n  n = sum_squares(w.g)\n  +w.g = accumulate(g)\n"},
      {"the state is added to in between",
       [](Gradient& m) {
         m.call("contract", {m.x, m.dy}, {m.g});
         m.call("accumulate", {m.another()}, {m.state_g}, 0, 1);
         m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
       },
       "  g = contract(x, dy)\n  +w.g = accumulate(h)\n  +w.g = accumulate(g)\n"},
      {"the operation cannot add",
       [](Gradient& m) {
         m.call("gelu", {m.another()}, {m.g});
         m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
       },
       "  g = gelu(h)\n  +w.g = accumulate(g)\n"},
      {"the state is wider",
       [](Gradient& m) {
         const BufferId narrow = m.arena("n", kW, DType::bf16);
         m.call("contract", {m.x, m.dy}, {narrow});
         m.call("accumulate", {narrow}, {m.state_g}, 0, 1);
       },
       "  n = contract(x, dy)\n  +w.g = accumulate(n)\n"},
      {"the state is narrower, and the operation cannot round",
       [](Gradient& m) {
         const BufferId narrow = m.state("n.g", kW, program::StateKind::gradient, DType::bf16);
         m.call("embedding_grad", {m.x, m.dy}, {m.g});
         m.call("accumulate", {m.g}, {narrow}, 0, 1);
       },
       "  g = embedding_grad(x, dy)\n  +n.g = accumulate(g)\n"},
      {"it is made from the state",
       [](Gradient& m) {
         m.call("contract", {m.x, m.state_g}, {m.g});
         m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
       },
       "  g = contract(x, w.g)\n  +w.g = accumulate(g)\n"},
      {"another body makes it",
       [](Gradient& m) {
         m.call("contract", {m.x, m.dy}, {m.g});
         m.body("update");
         m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
       },
       "  g = contract(x, dy)\nupdate:\n  +w.g = accumulate(g)\n"},
  };
  expect_fused<Gradient>(cases, fused, "backward:\n");
}

// An assignment is an `accumulate` that does not add.
TEST(Fuse, AnAssignmentIsMadeInPlace) {
  Gradient m;
  const BufferId w = m.state("w", kW), moment = m.state("w.m", kW, program::StateKind::optimizer),
                 w1 = m.arena("w1", kW), m1 = m.arena("m1", kW);
  const BufferId one = m.arena("one", {}, DType::f64);
  m.call("sgd", {w, m.state_g, moment, one, one}, {w1, m1});
  m.call("accumulate", {w1}, {w});
  m.call("accumulate", {m1}, {moment});
  EXPECT_EQ(fused(m), "backward:\n  w, w.m = sgd(w, w.g, w.m, one, one)\n");

  Gradient n;  // a product reads all of its operand while it writes
  const BufferId v = n.state("v", kW), u = n.arena("u", kW);
  n.call("contract", {n.x, v}, {u});
  n.call("accumulate", {u}, {v});
  EXPECT_EQ(fused(n), "backward:\n  u = contract(x, v)\n  v = accumulate(u)\n");

  Gradient k;  // nor may a moment become the weight
  const BufferId kw = k.state("w", kW), km = k.state("w.m", kW, program::StateKind::optimizer), kw1 = k.arena("w1", kW),
                 km1 = k.arena("m1", kW), k1 = k.arena("one", {}, DType::f64);
  k.call("sgd", {kw, k.state_g, km, k1, k1}, {kw1, km1});
  k.call("accumulate", {kw1}, {km});
  EXPECT_EQ(fused(k), "backward:\n  w1, m1 = sgd(w, w.g, w.m, one, one)\n  w.m = accumulate(w1)\n");
}

}  // namespace kintsugi::lower::fuse_test
