#include "kintsugi/lower/fuse.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::fuse_test {
namespace {

const Shape kX = {{"batch", 2}, {"embed", 4}}, kW = {{"embed", 4}, {"ffn", 3}}, kY = {{"batch", 2}, {"ffn", 3}},
            kB = {{"ffn", 3}};

std::string fused(Maker& m) {
  fuse(m.p, ops::operations(), *kernels::reference_kernels());
  return text(m.p);
}

// x, w and b, and the products y = x w; z = y + b.
struct Bias : Maker {
  BufferId x = arena("x", kX), w = state("w", kW), b = state("b", kB), y = arena("y", kY), z = arena("z", kY);

  Bias() {
    p.buffer(x).input = "x";
    body("forward");
  }
};

// The gradient g of w, from x and dy, to be added to the state "w.g".
struct Gradient : Maker {
  BufferId x = arena("x", kX), dy = arena("dy", kY), g = arena("g", kW),
           state_g = state("w.g", kW, program::StateKind::gradient);

  Gradient() { body("backward"); }
  BufferId another() { return arena("h", kW); }
};

}  // namespace

TEST(Fuse, ABiasGoesIntoTheProduct) {
  Bias m;
  m.call("contract", {m.x, m.w}, {m.y}).cost.flops = 48;
  m.call("gelu", {m.x}, {m.arena("other", kX)});
  m.call("add", {m.y, m.b}, {m.z}).cost.flops = 6;
  EXPECT_EQ(fused(m), "forward:\n  z = contract(x, w, b)\n  other = gelu(x)\n");
  EXPECT_EQ(m.p.bodies[0].instructions[0].cost.flops, 54);
}

TEST(Fuse, ABiasStays) {
  struct Case {
    const char* why;
    void (*make)(Bias&);
    const char* after;
  };
  const Case cases[] = {
      {"the product is used again",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.b}, {m.z});
         m.call("scale", {m.y}, {m.arena("a", kY)});
       },
       "  y = contract(x, w)\n  z = add(y, b)\n  a = scale(y)\n"},
      {"it is used by another body",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.b}, {m.z});
         m.body("backward");
         m.call("scale", {m.y}, {m.arena("a", kY)});
       },
       "  y = contract(x, w)\n  z = add(y, b)\nbackward:\n  a = scale(y)\n"},
      {"it is used under another name",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.b}, {m.z});
         m.call("scale", {m.view("v", m.y)}, {m.arena("a", kY)});
       },
       "  y = contract(x, w)\n  z = add(y, b)\n  a = scale(v)\n"},
      {"the run reads it",
       [](Bias& m) {
         m.p.buffer(m.y).output = "logits";
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.b}, {m.z});
       },
       "  y = contract(x, w)\n  z = add(y, b)\n"},
      {"the sum is of another layer",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y}, 0);
         m.call("add", {m.y, m.b}, {m.z}, 1);
       },
       "  y = contract(x, w)\n  z = add(y, b)\n"},
      {"it is no bias: its dims are not the last",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.state("c", {{"batch", 2}})}, {m.z});
       },
       "  y = contract(x, w)\n  z = add(y, c)\n"},
      {"it is no bias: it is as large as the product",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.state("c", kY)}, {m.z});
       },
       "  y = contract(x, w)\n  z = add(y, c)\n"},
      {"three are added",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("add", {m.y, m.b, m.b}, {m.z});
       },
       "  y = contract(x, w)\n  z = add(y, b, b)\n"},
      {"the bias is made after the product",
       [](Bias& m) {
         const BufferId c = m.arena("c", kB);
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("scale", {m.b}, {c});
         m.call("add", {m.y, c}, {m.z});
       },
       "  y = contract(x, w)\n  c = scale(b)\n  z = add(y, c)\n"},
      {"what makes it is no product",
       [](Bias& m) {
         m.call("gelu", {m.z}, {m.y});
         m.call("add", {m.y, m.b}, {m.z});
       },
       "  y = gelu(z)\n  z = add(y, b)\n"},
  };
  for (const Case& c : cases) {
    Bias m;
    c.make(m);
    EXPECT_EQ(fused(m), std::string("forward:\n") + c.after) << c.why;
  }
}

TEST(Fuse, AProductTakesOneBias) {
  Bias m;
  const BufferId a = m.arena("a", kY);
  m.call("contract", {m.x, m.w}, {m.y});
  m.call("add", {m.y, m.b}, {m.z});
  m.call("add", {m.z, m.b}, {a});
  EXPECT_EQ(fused(m), "forward:\n  z = contract(x, w, b)\n  a = add(z, b)\n");
}

// What nobody else reads is not stored.
TEST(Fuse, AnActivationGoesIntoTheProduct) {
  for (const char* kind : {"gelu", "silu", "relu", "relu2", "tanh"}) {
    Bias m;
    const BufferId a = m.arena("a", kY);
    m.call("contract", {m.x, m.w}, {m.y}).cost = {.flops = 48, .memory_bytes = 100};
    m.call("add", {m.y, m.b}, {m.z}).cost.flops = 6;
    m.call(kind, {m.z}, {a}).cost = {.flops = 60, .memory_bytes = 48};
    m.p.bodies[0].instructions[2].attributes = {{"form", "tanh"}};
    EXPECT_EQ(fused(m), "forward:\n  a = contract(x, w, b)\n");
    const program::Instruction& product = m.p.bodies[0].instructions[0];
    EXPECT_EQ(to_string(product.attributes), std::string("epilogue=") + kind + " form=tanh");
    EXPECT_EQ(product.absent, (tensor::Absent{.ins = 8, .outs = 6}));
    EXPECT_EQ(product.cost.flops, 114);
    EXPECT_EQ(product.cost.memory_bytes, 100);
  }
}

// What the backward pass reads is the second output.
TEST(Fuse, WhatAnActivationIsOfIsKept) {
  struct Case {
    const char* why;
    void (*make)(Bias&);
    const char* after;
  };
  const Case cases[] = {
      {"the backward pass reads it",
       [](Bias& m) {
         m.body("backward");
         m.call("gelu_grad", {m.y, m.arena("dy", kY)}, {m.arena("dx", kY)});
       },
       "backward:\n  dx = gelu_grad(y, dy)\n"},
      {"under another name",
       [](Bias& m) {
         m.body("backward");
         m.call("gelu_grad", {m.view("v", m.y), m.arena("dy", kY)}, {m.arena("dx", kY)});
       },
       "backward:\n  dx = gelu_grad(v, dy)\n"},
      {"the run reads it", [](Bias& m) { m.p.buffer(m.y).output = "logits"; }, ""},
      {"this body reads it", [](Bias& m) { m.call("scale", {m.y}, {m.arena("s", kY)}); }, "  s = scale(y)\n"},
  };
  for (const Case& c : cases) {
    Bias m;
    m.call("contract", {m.x, m.w}, {m.y}).cost.memory_bytes = 100;
    m.call("gelu", {m.y}, {m.z}).cost.memory_bytes = 48;
    c.make(m);
    EXPECT_EQ(fused(m), std::string("forward:\n  z, y = contract(x, w)\n") + c.after) << c.why;
    EXPECT_EQ(m.p.bodies[0].instructions[0].cost.memory_bytes, 124) << c.why;
    EXPECT_EQ(m.p.bodies[0].instructions[0].absent, (tensor::Absent{.ins = 12, .outs = 4})) << c.why;
  }
}

// dx = f'(x) dy goes into the product that makes dy.
TEST(Fuse, TheGradientOfAnActivationGoesIntoTheProduct) {
  Bias m;
  const BufferId a = m.arena("a", kY), dx = m.arena("dx", kY);
  m.call("contract", {m.x, m.w}, {m.y}).cost = {.flops = 48, .memory_bytes = 100};
  m.call("gelu_grad", {a, m.y}, {dx}).cost.flops = 96;
  EXPECT_EQ(fused(m), "forward:\n  dx = contract(x, w, a)\n");
  const program::Instruction& product = m.p.bodies[0].instructions[0];
  EXPECT_EQ(to_string(product.attributes), "epilogue=gelu_grad");
  EXPECT_EQ(product.absent, (tensor::Absent{.ins = 4, .outs = 6}));
  EXPECT_EQ(product.cost.flops, 144);
  EXPECT_EQ(product.cost.memory_bytes, 124);
}

TEST(Fuse, AnActivationStays) {
  struct Case {
    const char* why;
    void (*make)(Bias&);
    const char* after;
  };
  const Case cases[] = {
      {"its product is of another layer",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y}, 0);
         m.call("gelu", {m.y}, {m.z}, 1);
       },
       "  y = contract(x, w)\n  z = gelu(y)\n"},
      {"its product is in another body",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.body("backward");
         m.call("gelu", {m.y}, {m.z});
       },
       "  y = contract(x, w)\nbackward:\n  z = gelu(y)\n"},
      {"a collective makes its operand",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.collective(program::Collective::all_reduce, {m.y}, {m.z});
         m.call("gelu", {m.z}, {m.arena("a", kY)});
       },
       "  y = contract(x, w)\n  z = all_reduce over (y)\n  a = gelu(z)\n"},
      {"the product has another type",
       [](Bias& m) {
         const BufferId narrow = m.arena("n", kY, DType::bf16);
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("gelu", {m.y}, {narrow});
       },
       "  y = contract(x, w)\n  n = gelu(y)\n"},
      {"the product is an addition to a state",
       [](Bias& m) {
         const BufferId s = m.state("s", kY);
         m.call("contract", {m.x, m.w}, {s}, 0, 1);
         m.call("gelu", {s}, {m.z});
       },
       "  +s = contract(x, w)\n  z = gelu(s)\n"},
      {"the product has an activation",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("gelu", {m.y}, {m.z});
         m.call("relu", {m.z}, {m.arena("a", kY)});
       },
       "  z = contract(x, w)\n  a = relu(z)\n"},
      {"what is added stands behind an activation",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("gelu", {m.y}, {m.z});
         m.call("add", {m.z, m.b}, {m.arena("a", kY)});
       },
       "  z = contract(x, w)\n  a = add(z, b)\n"},
      {"what it makes is added to a state",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("gelu", {m.y}, {m.z});
         m.call("accumulate", {m.z}, {m.state("s", kY)}, 0, 1);
       },
       "  z = contract(x, w)\n  +s = accumulate(z)\n"},
      {"the gradient that comes in is used again",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("gelu_grad", {m.arena("a", kY), m.y}, {m.z});
         m.call("sum", {m.y}, {m.arena("db", kB)});
       },
       "  y = contract(x, w)\n  z = gelu_grad(a, y)\n  db = sum(y)\n"},
      {"its operand is made behind the product",
       [](Bias& m) {
         const BufferId a = m.arena("a", kY);
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("scale", {m.arena("s", kY)}, {a});
         m.call("gelu_grad", {a, m.y}, {m.z});
       },
       "  y = contract(x, w)\n  a = scale(s)\n  z = gelu_grad(a, y)\n"},
      {"the product is the operand x of a gradient",
       [](Bias& m) {
         m.call("contract", {m.x, m.w}, {m.y});
         m.call("gelu_grad", {m.y, m.arena("dy", kY)}, {m.z});
       },
       "  y = contract(x, w)\n  z = gelu_grad(y, dy)\n"},
      {"what makes it is no product",
       [](Bias& m) {
         m.call("scale", {m.z}, {m.y});
         m.call("gelu", {m.y}, {m.arena("a", kY)});
       },
       "  y = scale(z)\n  a = gelu(y)\n"},
  };
  for (const Case& c : cases) {
    Bias m;
    c.make(m);
    EXPECT_EQ(fused(m), std::string("forward:\n") + c.after) << c.why;
  }
}

TEST(Fuse, OnlyWhatTheKernelHas) {
  Bias m;
  m.call("contract", {m.x, m.w}, {m.y});
  m.call("gelu", {m.y}, {m.z});
  fuse(m.p, ops::operations(), *kernels::without_epilogues(kernels::reference_kernels()));
  EXPECT_EQ(text(m.p), "forward:\n  y = contract(x, w)\n  z = gelu(y)\n");
}

TEST(Fuse, AGradientIsAddedWhereItIsMade) {
  Gradient m;
  m.call("contract", {m.x, m.dy}, {m.g});
  m.call("accumulate", {m.g}, {m.state_g}, 0, 1);
  EXPECT_EQ(fused(m), "backward:\n  +w.g = contract(x, dy)\n");
}

// A product rounds its sum once, to a state that is narrower; its bytes become fewer.
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

// The second of two outputs; the other is as it was.
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
  struct Case {
    const char* why;
    void (*make)(Gradient&);
    const char* after;
  };
  const Case cases[] = {
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
  for (const Case& c : cases) {
    Gradient m;
    c.make(m);
    EXPECT_EQ(fused(m), std::string("backward:\n") + c.after) << c.why;
  }
}

// Assignment is an `accumulate` that does not add.
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

// --- Sums of what products read, of devices

namespace {

std::string fused_for_device(Maker& m) {
  fuse(m.p, ops::operations(), *kernels::planned_device_kernels());
  return text(m.p);
}

// The gradients of a weight and of its bias.
struct Sum : Gradient {
  BufferId db = arena("db", kB), state_db = state("b.g", kB, program::StateKind::gradient);
};

}  // namespace

TEST(Fuse, AProductAlsoSumsWhatItSums) {
  Sum m;
  m.call("sum", {m.dy}, {m.db}).cost = {6, 100};
  m.call("scale", {m.x}, {m.another()});
  m.call("contract", {m.x, m.dy}, {m.g}).cost = {48, 1000};
  EXPECT_EQ(fused_for_device(m), "backward:\n  h = scale(x)\n  g, db = contract(x, dy)\n");
  const program::Cost& cost = m.p.bodies[0].instructions[1].cost;
  EXPECT_EQ(cost.flops, 54);
  EXPECT_EQ(cost.memory_bytes, 1000 + 100 - static_cast<double>(m.p.buffer(m.dy).bytes()));

  Sum states;  // both are added to states
  states.call("contract", {states.x, states.dy}, {states.g});
  states.call("accumulate", {states.g}, {states.state_g}).accumulate = 1;
  states.call("sum", {states.dy}, {states.db});
  states.call("accumulate", {states.db}, {states.state_db}).accumulate = 1;
  EXPECT_EQ(fused_for_device(states), "backward:\n  +w.g, +b.g = contract(x, dy)\n");
  EXPECT_EQ(states.p.bodies[0].instructions[0].accumulate, 3u);
}

TEST(Fuse, ASumStaysBesideTheProduct) {
  struct Case {
    const char* why;
    void (*make)(Sum&);
    const char* after;
  };
  const Case cases[] = {
      {"it is read before",
       [](Sum& m) {
         m.call("sum", {m.dy}, {m.db});
         m.call("scale", {m.db}, {m.arena("a", kB)});
         m.call("contract", {m.x, m.dy}, {m.g});
       },
       "  db = sum(dy)\n  a = scale(db)\n  g = contract(x, dy)\n"},
      {"the product sums other dims",
       [](Sum& m) {
         m.call("sum", {m.dy}, {m.db});
         m.call("contract", {m.state("w", kW), m.dy}, {m.arena("dx", kX)});
       },
       "  db = sum(dy)\n  dx = contract(w, dy)\n"},
      {"the product is of another layer",
       [](Sum& m) {
         m.call("sum", {m.dy}, {m.db});
         m.call("contract", {m.x, m.dy}, {m.g}, 1);
       },
       "  db = sum(dy)\n  g = contract(x, dy)\n"},
      {"what is summed changes in between",
       [](Sum& m) {
         m.call("sum", {m.dy}, {m.db});
         m.call("scale", {m.x}, {m.dy});
         m.call("contract", {m.x, m.dy}, {m.g});
       },
       "  db = sum(dy)\n  dy = scale(x)\n  g = contract(x, dy)\n"},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.why);
    Sum m;
    c.make(m);
    EXPECT_EQ(fused_for_device(m), std::string("backward:\n") + c.after);
  }
  Sum processor;
  processor.call("sum", {processor.dy}, {processor.db});
  processor.call("contract", {processor.x, processor.dy}, {processor.g});
  EXPECT_EQ(fused(processor), "backward:\n  db = sum(dy)\n  g = contract(x, dy)\n");
}

// --- Sums in place, of devices

namespace {

// The gradients of x by three products, and one that comes from behind.
struct Sums : Maker {
  BufferId dy = arena("dy", kY), w = state("w", kW), behind = arena("behind", kX), a = arena("a", kX),
           b = arena("b", kX), c = arena("c", kX), sum = arena("sum", kX), next = arena("next", kW),
           gamma = state("gamma", {{"embed", 4}}), dgamma = arena("dgamma", {{"embed", 4}}), out = arena("out", kX);

  Sums() {
    body("backward");
    call("scale", {out}, {behind}, 1);
  }
  void product(BufferId to, int layer = 0) { call("contract", {dy, w}, {to}, layer); }
  void norm_grad(BufferId dx, int layer = 0) { call("rms_norm_grad", {out, gamma, behind}, {dx, dgamma}, layer); }
};

}  // namespace

// As of a residual, when a text is generated.
TEST(Fuse, AThinProductAddsItsBiasToASum) {
  Sums m;
  m.call("scale", {m.out}, {m.a});
  m.call("contract", {m.dy, m.w, m.gamma}, {m.b});
  m.call("add", {m.a, m.b}, {m.sum});
  EXPECT_EQ(fused_for_device(m),
            "backward:\n  behind = scale(out)\n  sum = scale(out)\n  +sum = contract(dy, w, gamma)\n");
}

TEST(Fuse, ASumIsMadeWhereItsFirstTermLies) {
  Sums m;
  m.product(m.a), m.product(m.b), m.product(m.c);
  m.call("add", {m.c, m.a, m.b}, {m.sum});
  m.call("scale", {m.sum}, {m.out});
  EXPECT_EQ(fused_for_device(m),
            "backward:\n  behind = scale(out)\n  sum = contract(dy, w)\n  +sum = contract(dy, w)\n"
            "  +sum = contract(dy, w)\n  out = scale(sum)\n");

  // What comes from behind is read by others before, and the next sum begins with this one; a norm adds across layers.
  Sums r;
  const BufferId dx = r.arena("dx", kX), more = r.arena("more", kX);
  r.call("contract", {r.behind, r.dy}, {r.next});
  r.call("rms_norm_grad", {r.out, r.gamma, r.a}, {dx, r.dgamma}, 1);
  r.call("add", {dx, r.behind}, {r.sum});
  r.call("contract", {r.sum, r.dy}, {r.next});
  r.call("rms_norm_grad", {r.out, r.gamma, r.a}, {more, r.dgamma});
  r.call("add", {more, r.sum}, {r.c});
  EXPECT_EQ(fused_for_device(r),
            "backward:\n  c = scale(out)\n  next = contract(c, dy)\n  +c, dgamma = rms_norm_grad(out, gamma, a)\n"
            "  next = contract(c, dy)\n  +c, dgamma = rms_norm_grad(out, gamma, a)\n");
}

TEST(Fuse, ASumStays) {
  struct Case {
    const char* why;
    void (*make)(Sums&);
  };
  const Case cases[] = {
      {"the first term is read afterwards",
       [](Sums& m) {
         m.product(m.a), m.product(m.b);
         m.call("add", {m.a, m.b}, {m.sum});
         m.call("scale", {m.a}, {m.out});
       }},
      {"and by another body",
       [](Sums& m) {
         m.product(m.a), m.product(m.b);
         m.call("add", {m.a, m.b}, {m.sum});
         m.body("update");
         m.call("scale", {m.a}, {m.out});
       }},
      {"the second term is read too",
       [](Sums& m) {
         m.product(m.a), m.product(m.b);
         m.call("scale", {m.b}, {m.out});
         m.call("add", {m.a, m.b}, {m.sum});
       }},
      {"no term is made here but one",
       [](Sums& m) {
         m.product(m.a);
         m.call("add", {m.a, m.out}, {m.sum});
       }},
      {"what makes it cannot add",
       [](Sums& m) {
         m.product(m.a);
         m.call("scale", {m.out}, {m.b});
         m.call("add", {m.a, m.b}, {m.sum});
       }},
      {"a norm adds to what it reads",
       [](Sums& m) {
         m.norm_grad(m.a);
         m.call("add", {m.behind, m.a}, {m.sum});
       }},
      {"a product of another layer rounds otherwise",
       [](Sums& m) {
         m.product(m.a), m.product(m.b, 1);
         m.call("add", {m.a, m.b}, {m.sum});
       }},
      {"a product with a bias, of more rows than those that are thin",
       [](Sums& m) {
         const Shape x = {{"batch", 5}, {"embed", 4}}, y = {{"batch", 5}, {"ffn", 3}};
         const BufferId dy5 = m.arena("dy5", y), a5 = m.arena("a5", x), b5 = m.arena("b5", x);
         m.call("contract", {dy5, m.w}, {a5});
         m.call("contract", {dy5, m.w, m.gamma}, {b5});
         m.call("add", {a5, b5}, {m.arena("sum5", x)});
       }},
      {"the terms are of another type",
       [](Sums& m) {
         const BufferId narrow = m.arena("n", kX, DType::bf16);
         m.product(m.a);
         m.call("contract", {m.dy, m.w}, {narrow});
         m.call("add", {m.a, narrow}, {m.sum});
       }},
      {"it is sent while it would be added to",
       [](Sums& m) {
         m.product(m.a);
         m.collective(program::Collective::all_reduce, {m.a}, {m.c});
         m.product(m.b);
         m.call("add", {m.a, m.b}, {m.sum});
       }},
  };
  for (const Case& c : cases) {
    Sums m;
    c.make(m);
    const std::string before = text(m.p);
    EXPECT_EQ(fused_for_device(m), before) << c.why;
  }
  Sums host;
  host.product(host.a), host.product(host.b);
  host.call("add", {host.a, host.b}, {host.sum});
  const std::string before = text(host.p);
  EXPECT_EQ(fused(host), before);
}

}  // namespace kintsugi::lower::fuse_test
