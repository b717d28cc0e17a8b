// Sums of the outputs of norm gradients, fused into them, and in-place sums; on devices.
#include "kintsugi/lower/fuse/fuse_test.h"
#include "kintsugi/lower/fuse/growth_test.h"

namespace kintsugi::lower::fuse_test {
namespace {

// The gradient of a norm, which leads to a matmul's operand, and the gradients of that matmul's weight and bias.
struct NormSum : Maker {
  BufferId out = arena("out", kX), dy = arena("dy", kX), dx = arena("dx", kX), gamma = state("gamma", {{"embed", 4}}),
           dgamma = arena("dgamma", {{"embed", 4}}), dbeta = arena("dbeta", {{"embed", 4}}),
           db = arena("db", {{"embed", 4}}), x = arena("x", kY), g = arena("g", {{"ffn", 3}, {"embed", 4}});

  NormSum() { body("backward"); }
  void norm(int layer = 0) { call("layer_norm_grad", {out, gamma, dy}, {dx, dgamma, dbeta}, layer); }
  void sum() { call("sum", {dx}, {db}); }
  void product() { call("contract", {x, dx}, {g}); }
};

}  // namespace

// Regardless of its layer.
TEST(Fuse, AGradientOfANormIsAlsoSummed) {
  for (const int layer : {0, 1}) {
    NormSum m;
    m.norm(layer), m.product(), m.sum();
    EXPECT_EQ(fused_for_device(m),
              "backward:\n  dx, dgamma, dbeta, db = layer_norm_grad(out, gamma, dy)\n  g = contract(x, dx)\n");
  }
  NormSum state;  // added to one
  const BufferId to = state.state("b.g", {{"embed", 4}}, program::StateKind::gradient);
  state.norm(), state.sum();
  state.call("accumulate", {state.db}, {to}).accumulate = 1;
  EXPECT_EQ(fused_for_device(state), "backward:\n  dx, dgamma, dbeta, +b.g = layer_norm_grad(out, gamma, dy)\n");
  EXPECT_EQ(state.p.bodies[0].instructions[0].accumulate, 8u);
  NormSum plain;  // without beta
  plain.call("layer_norm_grad", {plain.out, plain.gamma, plain.dy}, {plain.dx, plain.dgamma});
  plain.sum();
  EXPECT_EQ(fused_for_device(plain), "backward:\n  dx, dgamma, db = layer_norm_grad(out, gamma, dy)\n");
  EXPECT_EQ(plain.p.bodies[0].instructions[0].absent.outs, 4u);
  NormSum costs;
  costs.call("layer_norm_grad", {costs.out, costs.gamma, costs.dy}, {costs.dx, costs.dgamma}).cost = {48, 1000};
  costs.call("sum", {costs.dx}, {costs.db}).cost = {6, 100};
  fused_for_device(costs);
  const program::Cost& cost = costs.p.bodies[0].instructions[0].cost;
  EXPECT_EQ(cost.flops, 54);
  EXPECT_EQ(cost.memory_bytes, 1000 + 100 - static_cast<double>(costs.p.buffer(costs.dx).bytes()));
}

TEST(Fuse, ASumStaysBesideTheGradientOfANorm) {
  const Case<NormSum> cases[] = {
      {"something else is summed",
       [](NormSum& m) {
         m.norm();
         m.call("sum", {m.dy}, {m.db});
       },
       "  dx, dgamma, dbeta = layer_norm_grad(out, gamma, dy)\n  db = sum(dy)\n"},
      {"something is added to it in between",
       [](NormSum& m) {
         m.norm();
         m.call("scale", {m.out}, {m.dx});
         m.sum();
       },
       "  dx, dgamma, dbeta = layer_norm_grad(out, gamma, dy)\n  dx = scale(out)\n  db = sum(dx)\n"},
      {"it is summed before",
       [](NormSum& m) {
         m.sum();
         m.norm();
       },
       "  db = sum(dx)\n  dx, dgamma, dbeta = layer_norm_grad(out, gamma, dy)\n"},
      {"over other dims",
       [](NormSum& m) {
         m.norm();
         m.call("sum", {m.dx}, {m.arena("rows", {{"batch", 2}})});
       },
       "  dx, dgamma, dbeta = layer_norm_grad(out, gamma, dy)\n  rows = sum(dx)\n"},
  };
  expect_fused<NormSum>(cases, fused_for_device, "backward:\n");
  NormSum processor;
  processor.norm(), processor.sum();
  EXPECT_EQ(fused(processor), "backward:\n  dx, dgamma, dbeta = layer_norm_grad(out, gamma, dy)\n  db = sum(dx)\n");
}

// --- In-place sums, on devices

namespace {

// The gradients of x by three matmuls, and one from the next layer.
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

// As for a residual in generation.
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

  // The incoming gradient has other readers before, and the next sum starts with this one; a norm adds across layers.
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

// Gradients of a deep residual stream: each sum accumulates into the next, all in one buffer.
TEST(Fuse, AChainOfSumsTakesTimeInProportionToItsLength) {
  const auto seconds = [](int layers) {
    Sums m;
    BufferId sum = m.a;
    m.product(sum);
    for (int layer = 0; layer < layers; ++layer) {
      const BufferId term = m.arena("term", kX), next = m.arena(fmt::format("sum {}", layer), kX);
      m.product(term);
      m.call("add", {sum, term}, {next});
      sum = next;
    }
    const double took = seconds_of([&] { fuse(m.p, ops::operations(), *kernels::planned_device_kernels()); });
    const std::vector<program::Instruction>& list = m.p.bodies[0].instructions;
    EXPECT_EQ(list.size(), static_cast<size_t>(layers) + 2);
    for (size_t at = 1; at < list.size(); ++at) EXPECT_EQ(list[at].outs[0], sum);
    return took;
  };
  EXPECT_LT(growth(seconds), 24);
}

TEST(Fuse, ASumStays) {
  const Case<Sums> cases[] = {
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
      {"it comes from another stage, which calls it otherwise",
       [](Sums& m) {
         m.collective(program::Collective::receive, {}, {m.a});
         m.product(m.b);
         m.call("add", {m.a, m.b}, {m.sum});
       }},
  };
  for (const Case<Sums>& c : cases) {
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

// --- Addition of another value in a matmul, on devices

namespace {

// y = x w + bias, with more rows than the thin kernels take, and r, which is read later.
struct Residual : Maker {
  Shape of_x = {{"batch", 5}, {"embed", 4}}, of_y = {{"batch", 5}, {"ffn", 3}};
  BufferId x = arena("x", of_x), w = state("w", kW), bias = state("bias", kB), y = arena("y", of_y),
           r = arena("r", of_y), s = arena("s", of_y), out = arena("out", of_y);

  Residual() {
    body("forward");
    call("scale", {out}, {r});
  }
  void product() { call("contract", {x, w, bias}, {y}); }
  void read_r() { call("scale", {r}, {out}); }
};

}  // namespace

TEST(Fuse, AProductAddsWhatIsBeside) {
  for (const bool first : {false, true}) {
    Residual m;
    m.product();
    first ? m.call("add", {m.y, m.r}, {m.s}) : m.call("add", {m.r, m.y}, {m.s});
    m.read_r();
    EXPECT_EQ(fused_for_device(m), "forward:\n  r = scale(out)\n  s = contract(x, w, bias, r)\n  out = scale(r)\n");
  }
  Residual processor;
  processor.product();
  processor.call("add", {processor.r, processor.y}, {processor.s});
  processor.read_r();
  const std::string before = text(processor.p);
  EXPECT_EQ(fused(processor), before);
}

TEST(Fuse, WhatIsBesideStays) {
  const Case<Residual> cases[] = {
      {"the product is read too",
       [](Residual& m) {
         m.product();
         m.call("add", {m.r, m.y}, {m.s});
         m.call("scale", {m.y}, {m.out});
         m.read_r();
       }},
      {"what is added is made behind the product",
       [](Residual& m) {
         m.product();
         m.call("scale", {m.out}, {m.r});
         m.call("add", {m.r, m.y}, {m.s});
         m.read_r();
       }},
      {"the place of the sum is read behind the product",
       [](Residual& m) {
         m.product();
         m.call("scale", {m.s}, {m.out});
         m.call("add", {m.r, m.y}, {m.s});
         m.read_r();
       }},
      {"the product is of another layer",
       [](Residual& m) {
         m.call("contract", {m.x, m.w, m.bias}, {m.y}, 1);
         m.call("add", {m.r, m.y}, {m.s});
         m.read_r();
       }},
      {"what is added is of another type",
       [](Residual& m) {
         const BufferId narrow = m.arena("narrow", m.of_y, DType::bf16);
         m.call("scale", {m.out}, {narrow});
         m.product();
         m.call("add", {narrow, m.y}, {m.s});
         m.call("scale", {narrow}, {m.out});
         m.read_r();
       }},
  };
  for (const Case<Residual>& c : cases) {
    Residual m;
    c.make(m);
    const std::string before = text(m.p);
    EXPECT_EQ(fused_for_device(m), before) << c.why;
  }
}

}  // namespace kintsugi::lower::fuse_test
