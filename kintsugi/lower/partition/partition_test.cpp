// What is inserted where: small graphs on two ranks, the text of their bodies.
#include "kintsugi/lower/partition/partition.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/order/overlap.h"
#include "kintsugi/lower/order/schedule.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/lower/step_test.h"

namespace kintsugi::lower::partition_test {
namespace {

plan::Plan plan_of(const std::string& axis, const std::vector<const char*>& rules) {
  plan::Plan plan = {.mesh = mesh::Mesh({{.name = axis, .size = 2}})};
  for (const char* rule : rules) plan.rules.push_back(plan::parse_rule(rule));
  return plan;
}

program::Program partitioned(const TestStep& step, const plan::Plan& plan) {
  program::Program p;
  partition(p, step.source(), plan);
  return p;
}

// The text of one body.
std::string body(program::Program p, const std::string& name) {
  std::erase_if(p.bodies, [&](const program::Body& b) { return b.name != name; });
  return text(p);
}

// y = gelu(x up) down, in two layers
struct Perceptron : TestStep {
  StateId up = weight("up", {{"embed", 3}, {"ffn", 4}}, 0), down = weight("down", {{"ffn", 4}, {"embed", 3}}, 1);

  Perceptron() {
    finish([this](Graph& g) {
      g.layer = 0;
      const ValueId x = g.input("x", {{{"batch", 2}, {"seq", 6}, {"embed", 3}}, DType::f32});
      const ValueId h = g.op("gelu", {g.contract(x, g.read(up), "batch seq ffn", DType::f32)}, {{"form", "tanh"}});
      g.layer = 1;
      return g.contract(h, g.read(down), "batch seq embed", DType::f32);
    });
  }
};

// x + norm(x) up down, with the norm's weight first
struct Norm : TestStep {
  StateId gamma = weight("gamma", {{"embed", 4}}), up = weight("up", {{"embed", 4}, {"ffn", 6}}),
          down = weight("down", {{"ffn", 6}, {"embed", 4}});

  Norm() {
    finish([this](Graph& g) {
      const ValueId x = g.input("x", {{{"batch", 2}, {"seq", 6}, {"embed", 4}}, DType::f32});
      const ValueId n = g.op("rms_norm", {x, g.read(gamma)}, {{"epsilon", 1e-5}, {"whole", "embed"}});
      const ValueId h = g.contract(n, g.read(up), "batch seq ffn", DType::f32);
      return g.add({x, g.contract(h, g.read(down), "batch seq embed", DType::f32)});
    });
  }
};

}  // namespace

// The gradient of each bucket is summed once per step, after its use in the last micro-batch.
TEST(Partition, DataParallel) {
  const Perceptron step;
  program::Program p = partitioned(step, plan_of("data", {"batch -> data"}));
  EXPECT_EQ(text(p),
            "forward:\n"
            "  contract = contract(x, up)\n"
            "  gelu = gelu(contract)\n"
            "  contract = contract(gelu, down)\n"
            "  sum = sum(contract)\n"
            "  +loss = accumulate(sum)\n"
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  contract = contract(broadcast, down)\n"
            "  contract = contract(gelu, broadcast)\n"
            "  +down.gradient = accumulate(contract)\n"
            "  gelu_grad = gelu_grad(contract, contract)\n"
            "  contract = contract(gelu_grad, up)\n"
            "  contract = contract(x, gelu_grad)\n"
            "  +up.gradient = accumulate(contract)\n"
            "update:\n"
            "  fill = fill()\n"
            "  down.0.0, down.0.1 = sgd(bucket down, bucket down.gradient, bucket down.m, fill, fill)\n"
            "  bucket down = accumulate(down.0.0)\n"
            "  bucket down.m = accumulate(down.0.1)\n"
            "  up.0.0, up.0.1 = sgd(bucket up, bucket up.gradient, bucket up.m, fill, fill)\n"
            "  bucket up = accumulate(up.0.0)\n"
            "  bucket up.m = accumulate(up.0.1)\n"
            "reduce:\n"
            "  bucket down.gradient = all_reduce over data(bucket down.gradient)\n"
            "  bucket up.gradient = all_reduce over data(bucket up.gradient)\n"
            "evaluate:\n"
            "  contract = contract(x, up)\n"
            "  gelu = gelu(contract)\n"
            "  contract = contract(gelu, down)\n"
            "  sum = sum(contract)\n"
            "  +loss = accumulate(sum)\n");
  schedule(p, plan::make_schedule("1f1b", 1, 1, 3));
  EXPECT_EQ(body(p, "backward"),
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  contract = contract(broadcast, down)\n"
            "  contract = contract(gelu, broadcast)\n"
            "  +down.gradient = accumulate(contract)\n"
            "  gelu_grad = gelu_grad(contract, contract)\n"
            "  contract = contract(gelu_grad, up)\n"
            "  contract = contract(x, gelu_grad)\n"
            "  +up.gradient = accumulate(contract)\n");
  EXPECT_EQ(body(p, "backward.last"),
            "backward.last:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  contract = contract(broadcast, down)\n"
            "  contract = contract(gelu, broadcast)\n"
            "  +down.gradient = accumulate(contract)\n"
            "  bucket down.gradient = all_reduce over data(bucket down.gradient)\n"
            "  gelu_grad = gelu_grad(contract, contract)\n"
            "  contract = contract(gelu_grad, up)\n"
            "  contract = contract(x, gelu_grad)\n"
            "  +up.gradient = accumulate(contract)\n"
            "  bucket up.gradient = all_reduce over data(bucket up.gradient)\n");
}

// Weights are gathered in each pass; gradients are collected in a bucket and reduced to the rank's shard.
TEST(Partition, Zero3) {
  const Perceptron step;
  program::Program p = partitioned(step, plan_of("data", {"batch -> data", "flat in optimizer -> data",
                                                          "flat in gradient -> data", "flat in weight -> data"}));
  EXPECT_EQ(text(p),
            "forward:\n"
            "  bucket up = all_gather over data(bucket up)\n"
            "  contract = contract(x, up)\n"
            "  gelu = gelu(contract)\n"
            "  bucket down = all_gather over data(bucket down)\n"
            "  contract = contract(gelu, down)\n"
            "  sum = sum(contract)\n"
            "  +loss = accumulate(sum)\n"
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  bucket down = all_gather over data(bucket down)\n"
            "  contract = contract(broadcast, down)\n"
            "  contract = contract(gelu, broadcast)\n"
            "  gap = fill()\n"
            "  down.gradient = accumulate(contract)\n"
            "  bucket down.gradient = reduce_scatter over data(bucket down.gradient)\n"
            "  +bucket down.gradient = accumulate(bucket down.gradient)\n"
            "  gelu_grad = gelu_grad(contract, contract)\n"
            "  bucket up = all_gather over data(bucket up)\n"
            "  contract = contract(gelu_grad, up)\n"
            "  contract = contract(x, gelu_grad)\n"
            "  gap = fill()\n"
            "  up.gradient = accumulate(contract)\n"
            "  bucket up.gradient = reduce_scatter over data(bucket up.gradient)\n"
            "  +bucket up.gradient = accumulate(bucket up.gradient)\n"
            "update:\n"
            "  fill = fill()\n"
            "  down.0.0, down.0.1 = sgd(bucket down, bucket down.gradient, bucket down.m, fill, fill)\n"
            "  bucket down = accumulate(down.0.0)\n"
            "  bucket down.m = accumulate(down.0.1)\n"
            "  up.0.0, up.0.1 = sgd(bucket up, bucket up.gradient, bucket up.m, fill, fill)\n"
            "  bucket up = accumulate(up.0.0)\n"
            "  bucket up.m = accumulate(up.0.1)\n"
            "evaluate:\n"
            "  bucket up = all_gather over data(bucket up)\n"
            "  contract = contract(x, up)\n"
            "  gelu = gelu(contract)\n"
            "  bucket down = all_gather over data(bucket down)\n"
            "  contract = contract(gelu, down)\n"
            "  sum = sum(contract)\n"
            "  +loss = accumulate(sum)\n");
  prefetch(p, ops::operations());
  overlap(p);
  EXPECT_EQ(body(p, "forward"),
            "forward:\n"
            "  bucket up = all_gather over data(bucket up)\n"
            "  bucket down = all_gather over data(bucket down)\n"
            "  wait bucket up = all_gather(bucket up)\n"
            "  contract = contract(x, up)\n"
            "  gelu = gelu(contract)\n"
            "  wait bucket down = all_gather(bucket down)\n"
            "  contract = contract(gelu, down)\n"
            "  sum = sum(contract)\n"
            "  +loss = accumulate(sum)\n");
}

// One sum in the forward pass, for the residual stream, and one in the backward pass, for the norm.
TEST(Partition, TensorParallel) {
  const Norm step;
  EXPECT_EQ(text(partitioned(step, plan_of("tensor", {"ffn -> tensor"}))),
            "forward:\n"
            "  rms_norm = rms_norm(x, gamma)\n"
            "  contract = contract(rms_norm, up)\n"
            "  contract = contract(contract, down)\n"
            "  contract = all_reduce over tensor(contract)\n"
            "  add = add(x, contract)\n"
            "  sum = sum(add)\n"
            "  +loss = accumulate(sum)\n"
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  contract = contract(broadcast, down)\n"
            "  contract = contract(contract, broadcast)\n"
            "  +down.gradient = accumulate(contract)\n"
            "  contract = contract(contract, up)\n"
            "  contract = contract(rms_norm, contract)\n"
            "  +up.gradient = accumulate(contract)\n"
            "  contract = all_reduce over tensor(contract)\n"
            "  rms_norm_grad.0, rms_norm_grad.1 = rms_norm_grad(x, gamma, contract)\n"
            "  +gamma.gradient = accumulate(rms_norm_grad.1)\n"
            "  add = add(broadcast, rms_norm_grad.0)\n"
            "update:\n"
            "  fill = fill()\n"
            "  down.0.0, down.0.1 = sgd(bucket up+1, bucket up+1.gradient, bucket up+1.m, fill, fill)\n"
            "  bucket up+1 = accumulate(down.0.0)\n"
            "  bucket up+1.m = accumulate(down.0.1)\n"
            "  gamma.0.0, gamma.0.1 = sgd(bucket gamma, bucket gamma.gradient, bucket gamma.m, fill, fill)\n"
            "  bucket gamma = accumulate(gamma.0.0)\n"
            "  bucket gamma.m = accumulate(gamma.0.1)\n"
            "evaluate:\n"
            "  rms_norm = rms_norm(x, gamma)\n"
            "  contract = contract(rms_norm, up)\n"
            "  contract = contract(contract, down)\n"
            "  contract = all_reduce over tensor(contract)\n"
            "  add = add(x, contract)\n"
            "  sum = sum(add)\n"
            "  +loss = accumulate(sum)\n");
}

// Gathers and reduce-scatters instead; and the norm's gradient, computed from the rank's tokens, is summed once per
// step.
TEST(Partition, SequenceParallel) {
  const Norm step;
  EXPECT_EQ(text(partitioned(step, plan_of("tensor", {"ffn -> tensor", "seq -> tensor"}))),
            "forward:\n"
            "  rms_norm = rms_norm(x, gamma)\n"
            "  rms_norm.parts = all_gather over tensor(rms_norm)\n"
            "  rms_norm = unstack(rms_norm.parts)\n"
            "  contract = contract(rms_norm, up)\n"
            "  contract = contract(contract, down)\n"
            "  contract.parts = stack(contract)\n"
            "  contract = reduce_scatter over tensor(contract.parts)\n"
            "  add = add(x, contract)\n"
            "  sum = sum(add)\n"
            "  +loss = accumulate(sum)\n"
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  contract = contract(broadcast, down)\n"
            "  contract = contract(contract, broadcast)\n"
            "  +down.gradient = accumulate(contract)\n"
            "  contract = contract(contract, up)\n"
            "  rms_norm.parts = all_gather over tensor(rms_norm)\n"
            "  rms_norm = unstack(rms_norm.parts)\n"
            "  contract = contract(rms_norm, contract)\n"
            "  +up.gradient = accumulate(contract)\n"
            "  contract.parts = stack(contract)\n"
            "  contract = reduce_scatter over tensor(contract.parts)\n"
            "  rms_norm_grad.0, rms_norm_grad.1 = rms_norm_grad(x, gamma, contract)\n"
            "  +gamma.gradient = accumulate(rms_norm_grad.1)\n"
            "  broadcast = broadcast(fill)\n"
            "  add = add(broadcast, rms_norm_grad.0)\n"
            "update:\n"
            "  fill = fill()\n"
            "  down.0.0, down.0.1 = sgd(bucket up+1, bucket up+1.gradient, bucket up+1.m, fill, fill)\n"
            "  bucket up+1 = accumulate(down.0.0)\n"
            "  bucket up+1.m = accumulate(down.0.1)\n"
            "  gamma.0.0, gamma.0.1 = sgd(bucket gamma, bucket gamma.gradient, bucket gamma.m, fill, fill)\n"
            "  bucket gamma = accumulate(gamma.0.0)\n"
            "  bucket gamma.m = accumulate(gamma.0.1)\n"
            "reduce:\n"
            "  bucket gamma.gradient = all_reduce over tensor(bucket gamma.gradient)\n"
            "evaluate:\n"
            "  rms_norm = rms_norm(x, gamma)\n"
            "  rms_norm.parts = all_gather over tensor(rms_norm)\n"
            "  rms_norm = unstack(rms_norm.parts)\n"
            "  contract = contract(rms_norm, up)\n"
            "  contract = contract(contract, down)\n"
            "  contract.parts = stack(contract)\n"
            "  contract = reduce_scatter over tensor(contract.parts)\n"
            "  add = add(x, contract)\n"
            "  sum = sum(add)\n"
            "  +loss = accumulate(sum)\n");
}

TEST(Partition, AnAxisThatSplitsNothing) {
  const Perceptron step;
  plan::Plan plan = plan_of("data", {"batch in head -> data"});
  std::string error = "no error";
  try {
    partitioned(step, plan);
  } catch (const base::UserError& e) {
    error = e.what();
  }
  EXPECT_EQ(error,
            "[partition] mesh axis \"data\" of size 2: no operation of the step has a dim that it could split, so that "
            "ranks would only repeat work; make the axis smaller, give it a dim by [parallel] rules, or ask for it "
            "with allow_repeat = true");
  plan.repeat = true;
  EXPECT_EQ(body(partitioned(step, plan), "forward"),
            "forward:\n"
            "  contract = contract(x, up)\n"
            "  gelu = gelu(contract)\n"
            "  contract = contract(gelu, down)\n"
            "  sum = sum(contract)\n"
            "  +loss = accumulate(sum)\n");
}

}  // namespace kintsugi::lower::partition_test
