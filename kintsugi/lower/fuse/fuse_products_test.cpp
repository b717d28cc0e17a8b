// Matmuls with biases and activations.
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/fuse/fuse_test.h"

namespace kintsugi::lower::fuse_test {
namespace {

// x, w and b, and the matmuls y = x w; z = y + b.
struct Bias : Maker {
  BufferId x = arena("x", kX), w = state("w", kW), b = state("b", kB), y = arena("y", kY), z = arena("z", kY);

  Bias() {
    p.buffer(x).input = "x";
    body("forward");
  }
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
  const Case<Bias> cases[] = {
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
  expect_fused<Bias>(cases, fused, "forward:\n");
}

TEST(Fuse, AProductTakesOneBias) {
  Bias m;
  const BufferId a = m.arena("a", kY);
  m.call("contract", {m.x, m.w}, {m.y});
  m.call("add", {m.y, m.b}, {m.z});
  m.call("add", {m.z, m.b}, {a});
  EXPECT_EQ(fused(m), "forward:\n  z = contract(x, w, b)\n  a = add(z, b)\n");
}

// A value without other readers is not stored.
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
    EXPECT_EQ(product.absent, (tensor::Absent{.ins = 56, .outs = 2}));
    EXPECT_EQ(product.cost.flops, 114);
    EXPECT_EQ(product.cost.memory_bytes, 100);
  }
}

// What the backward pass reads is the second output.
TEST(Fuse, WhatAnActivationIsOfIsKept) {
  const Case<Bias> cases[] = {
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
  for (const Case<Bias>& c : cases) {
    Bias m;
    m.call("contract", {m.x, m.w}, {m.y}).cost.memory_bytes = 100;
    m.call("gelu", {m.y}, {m.z}).cost.memory_bytes = 48;
    c.make(m);
    EXPECT_EQ(fused(m), std::string("forward:\n  z, y = contract(x, w)\n") + c.after) << c.why;
    EXPECT_EQ(m.p.bodies[0].instructions[0].cost.memory_bytes, 124) << c.why;
    EXPECT_EQ(m.p.bodies[0].instructions[0].absent, (tensor::Absent{.ins = 60, .outs = 0})) << c.why;
  }
}

// dx = f'(x) dy is fused into the matmul that computes dy.
TEST(Fuse, TheGradientOfAnActivationGoesIntoTheProduct) {
  Bias m;
  const BufferId a = m.arena("a", kY), dx = m.arena("dx", kY);
  m.call("contract", {m.x, m.w}, {m.y}).cost = {.flops = 48, .memory_bytes = 100};
  m.call("gelu_grad", {a, m.y}, {dx}).cost.flops = 96;
  EXPECT_EQ(fused(m), "forward:\n  dx = contract(x, w, a)\n");
  const program::Instruction& product = m.p.bodies[0].instructions[0];
  EXPECT_EQ(to_string(product.attributes), "epilogue=gelu_grad");
  EXPECT_EQ(product.absent, (tensor::Absent{.ins = 52, .outs = 2}));
  EXPECT_EQ(product.cost.flops, 144);
  EXPECT_EQ(product.cost.memory_bytes, 124);
}

TEST(Fuse, AnActivationStays) {
  const Case<Bias> cases[] = {
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
  expect_fused<Bias>(cases, fused, "forward:\n");
}

// A residual: the normalization adds the shortcut and applies the ReLU.
TEST(Fuse, AResidualAndItsActivationGoIntoABatchNorm) {
  Bias m;
  const BufferId statistics = m.arena("statistics", {{"moment", 2}, {"ffn", 3}}), shortcut = m.arena("shortcut", kY),
                 sum = m.arena("sum", kY);
  const std::vector<BufferId> ins = {m.y, m.b, m.state("beta", kB), statistics};
  m.call("batch_norm", ins, {m.z}).attributes = {{"epsilon", 1e-5}};
  m.call("add", {m.z, shortcut}, {sum});
  m.call("relu", {sum}, {m.arena("a", kY)});
  m.body("backward");
  m.call("relu_grad", {m.p.bodies[0].instructions[2].outs[0], m.arena("dy", kY)}, {m.arena("dx", kY)});
  EXPECT_EQ(fused(m),
            "forward:\n  a = batch_norm(y, b, beta, statistics, shortcut)\nbackward:\n  dx = relu_grad(a, dy)\n");
  const program::Instruction& norm = m.p.bodies[0].instructions[0];
  EXPECT_EQ(to_string(norm.attributes), "epsilon=1e-05 epilogue=relu");
  EXPECT_EQ(norm.absent, (tensor::Absent{.ins = 0b0110000, .outs = 0}));
}

// The gradients of gate and up by the same tokens.
TEST(Fuse, AProductOfExpertsAddsATerm) {
  Bias m;
  const BufferId counts = m.arena("counts", {{"batch", 1}, {"expert", 2}}), other = m.arena("other", kY),
                 sum = m.arena("sum", kY);
  m.call("grouped", {m.x, m.w, counts}, {m.y});
  m.call("add", {other, m.y}, {sum});
  EXPECT_EQ(fused(m), "forward:\n  sum = grouped(x, w, counts, other)\n");
  EXPECT_EQ(m.p.bodies[0].instructions[0].absent, (tensor::Absent{.ins = 0b01000, .outs = 0}));
}

TEST(Fuse, AnActivationOfABatchNormStays) {
  const Case<Bias> cases[] = {
      {"something else reads the normalized value",
       [](Bias& m) {
         m.call("batch_norm", {m.y, m.b, m.b}, {m.z});
         m.call("relu", {m.z}, {m.arena("a", kY)});
         m.call("scale", {m.z}, {m.arena("s", kY)});
       },
       "  z = batch_norm(y, b, b)\n  a = relu(z)\n  s = scale(z)\n"},
      {"no kernel applies it",
       [](Bias& m) {
         m.call("batch_norm", {m.y, m.b, m.b}, {m.z});
         m.call("gelu", {m.z}, {m.arena("a", kY)});
       },
       "  z = batch_norm(y, b, b)\n  a = gelu(z)\n"},
  };
  expect_fused<Bias>(cases, fused, "forward:\n");
}

TEST(Fuse, OnlyWhatTheKernelHas) {
  Bias m;
  m.call("contract", {m.x, m.w}, {m.y});
  m.call("gelu", {m.y}, {m.z});
  fuse(m.p, ops::operations(), *kernels::without_epilogues(kernels::reference_kernels()));
  EXPECT_EQ(text(m.p), "forward:\n  y = contract(x, w)\n  z = gelu(y)\n");
}

}  // namespace kintsugi::lower::fuse_test
