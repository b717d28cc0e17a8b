// A model small enough to read, from its graphs to its program: the text after each pass.
#include "kintsugi/lower/lower.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/graph/differentiate.h"
#include "kintsugi/lower/partition.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/program/print.h"

namespace kintsugi::lower {
namespace {

using graph::Graph;
using graph::StateId;
using graph::StateKind;
using graph::ValueId;

const Type kScalar = {Shape{}, DType::f64};

// y = gelu(x w + b), as a step with one layer: the loss is the sum of y, the update is SGD.
struct Step {
  graph::StateTable states;
  StateId w = states.add({.name = "w", .type = {{{"embed", 3}, {"ffn", 4}}, DType::f32}, .decay = true});
  StateId b = states.add({.name = "b", .type = {{{"ffn", 4}}, DType::f32}});
  StateId loss = states.add({.name = "loss", .type = kScalar, .kind = StateKind::statistic, .saved = false});
  Graph micro{"micro-batch", ops::operations(), states};
  Graph update{"update", ops::operations(), states};
  Graph evaluate{"evaluate", ops::operations(), states};

  ValueId forward(Graph& g) {
    const ValueId x = g.input("x", {{{"batch", 2}, {"embed", 3}}, DType::f32});
    const ValueId h = g.add({g.contract(x, g.read(w), "batch ffn", DType::f32), g.read(b)});
    const ValueId y = g.op("gelu", {h}, {{"form", "tanh"}});
    const ValueId sum = g.sum_to(y, kScalar);
    g.accumulate(sum, loss);
    return sum;
  }

  Step() {
    const ValueId sum = forward(micro);
    const ValueId seed = micro.fill(1.0, kScalar);
    for (const graph::StateGradient& found : graph::differentiate(micro, sum, seed)) {
      const StateId to = states.add({.name = states[found.state].name + ".gradient",
                                     .type = states[found.state].type,
                                     .kind = StateKind::gradient});
      micro.accumulate(found.gradient, to);
    }
    update.phase = graph::Phase::update;
    const StateId m = states.add({.name = "w.m", .type = states[w].type, .kind = StateKind::optimizer});
    const ValueId one = update.fill(1.0, kScalar);
    const std::vector<ValueId> next =
        update.apply("sgd", {update.read(w), update.read(states.find("w.gradient")), update.read(m), one, one},
                     {{"momentum", 0.9}, {"weight_decay", 0.0}}, "w");
    update.assign(next[0], w);
    update.assign(next[1], m);
    forward(evaluate);
    evaluate.make("output", {0}, {}, {{"name", "seen"}});
  }

  Source source(int64_t micro_batches = 2) const {
    return {
        .states = states, .micro = &micro, .update = &update, .evaluate = &evaluate, .micro_batches = micro_batches};
  }
};

const plan::Plan kOneRank = {.mesh = {{{"data", 1}}}, .rules = {}};

}  // namespace

TEST(Partition, EveryOperationOfAGraphIsAnInstruction) {
  const Step step;
  program::Program p;
  partition(p, step.source(), kOneRank);
  EXPECT_EQ(text(p),
            "forward:\n"
            "  contract = contract(x, w)\n"
            "  add = add(contract, b)\n"
            "  gelu = gelu(add)\n"
            "  sum = sum(gelu)\n"
            "  +loss = accumulate(sum)\n"
            "  fill = fill()\n"
            "backward:\n"
            "  broadcast = broadcast(fill)\n"
            "  gelu_grad = gelu_grad(add, broadcast)\n"
            "  sum = sum(gelu_grad)\n"
            "  contract = contract(gelu_grad, w)\n"
            "  contract = contract(x, gelu_grad)\n"
            "  +b.gradient = accumulate(sum)\n"
            "  +w.gradient = accumulate(contract)\n"
            "update:\n"
            "  fill = fill()\n"
            "  w.0, w.1 = sgd(w, w.gradient, w.m, fill, fill)\n"
            "  w = accumulate(w.0)\n"
            "  w.m = accumulate(w.1)\n"
            "evaluate:\n"
            "  contract = contract(x, w)\n"
            "  add = add(contract, b)\n"
            "  gelu = gelu(add)\n"
            "  sum = sum(gelu)\n"
            "  +loss = accumulate(sum)\n");
  // An input is one buffer of each graph, a state one of all.
  std::string states, inputs;
  for (const program::StateInfo& s : p.states)
    states += s.kind + " " + s.name + " " + s.init + (s.saved ? "" : " unsaved") + "; ";
  for (const program::Buffer& b : p.buffers)
    if (!b.input.empty()) inputs += b.name + " is " + b.input + (b.output.empty() ? "" : ", output " + b.output) + "; ";
  EXPECT_EQ(states,
            "weight w constant; weight b constant; statistic loss constant unsaved; gradient b.gradient constant; "
            "gradient w.gradient constant; optimizer w.m constant; ");
  EXPECT_EQ(inputs, "x is x; x is x, output seen; ");
  const program::Instruction& product = p.bodies[0].instructions[0];
  EXPECT_EQ(product.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(product.bytes, 4 * (6 + 12 + 8));
  EXPECT_EQ(product.phase, "forward");
}

// Views and caches are other names of one memory; a cache that is written in place is not written again.
TEST(Partition, OtherNamesOfOneMemory) {
  graph::StateTable states;
  const Type cache = {{{"batch", 1}, {"key_seq", 4}, {"kv_heads", 1}, {"head_dim", 2}}, DType::f32};
  const StateId keys = states.add({.name = "keys", .type = cache, .kind = StateKind::cache});
  Graph g("decode", ops::operations(), states);
  const ValueId k = g.input("k", {{{"batch", 1}, {"seq", 1}, {"kv_heads", 1}, {"head_dim", 2}}, DType::f32});
  const ValueId whole = g.op("cache_write", {g.read(keys), k});
  g.assign(whole, keys);
  g.scale(g.rename(whole, "key_seq", "seq"), 2.0);
  program::Program p;
  partition(p, {.states = states, .decode = &g}, kOneRank);
  EXPECT_EQ(text(p), "decode:\n  cache_write = cache_write(keys, k)\n  scale = scale(cache_write)\n");
  EXPECT_TRUE(p.bodies[0].at_position);
  const program::Instruction& write = p.bodies[0].instructions[0];
  EXPECT_EQ(p.root(write.outs[0]), p.state("keys")->buffer);
  const BufferId renamed = p.bodies[0].instructions[1].ins[0];
  EXPECT_EQ(p.root(renamed), p.state("keys")->buffer);
  EXPECT_EQ(to_string(p.buffer(renamed).type.shape), "[batch:1 seq:4 kv_heads:1 head_dim:2]");
}

TEST(Lower, APassAfterTheOther) {
  const Step step;
  const auto kernels = kernels::reference_kernels();
  std::string names, fused;
  const program::Program p = lower(step.source(), {.plan = kOneRank, .kernels = *kernels},
                                   [&](std::string_view name, const program::Program& now) {
                                     names += std::string(name) + " ";
                                     if (name == "fuse") fused = text(now);
                                   });
  EXPECT_EQ(names, "partition fuse workspace schedule memory ");
  EXPECT_EQ(fused,
            "forward:\n"
            "  add = contract(x, w, b)\n"
            "  gelu = gelu(add)\n"
            "  +loss = sum(gelu)\n"
            "  fill = fill()\n"
            "backward:\n"
            "  broadcast = broadcast(fill)\n"
            "  gelu_grad = gelu_grad(add, broadcast)\n"
            "  +b.gradient = sum(gelu_grad)\n"
            "  contract = contract(gelu_grad, w)\n"
            "  +w.gradient = contract(x, gelu_grad)\n"
            "update:\n"
            "  fill = fill()\n"
            "  w, w.m = sgd(w, w.gradient, w.m, fill, fill)\n"
            "evaluate:\n"
            "  add = contract(x, w, b)\n"
            "  gelu = gelu(add)\n"
            "  +loss = sum(gelu)\n");
  const std::string all = program::print(p);
  EXPECT_EQ(all.substr(all.find("body backward.first")),
            "body backward.first\n"
            "     0 #9 broadcast[batch:2 ffn:4] fp32 = broadcast(#8)   8 flops, 40 bytes\n"
            "     1 #10 gelu_grad[batch:2 ffn:4] fp32 = gelu_grad(#4, #9)  form=tanh   128 flops, 96 bytes\n"
            "     2 #14 b.gradient[ffn:4] fp32 = sum(#10)   8 flops, 48 bytes\n"
            "     3 #12 contract[batch:2 embed:3] fp32 = contract(#10, #1)  dims=\"batch embed\" dtype=fp32   48 "
            "flops, 104 bytes\n"
            "     4 #15 w.gradient[embed:3 ffn:4] fp32 = contract(#0, #10)  dims=\"embed ffn\" dtype=fp32   48 flops, "
            "104 bytes\n"
            "calls train\n"
            "  forward.first micro-batch 0\n"
            "  backward.first micro-batch 0\n"
            "  forward micro-batch 1\n"
            "  backward micro-batch 1\n"
            "  update\n"
            "calls evaluate\n"
            "  evaluate micro-batch 0\n"
            "memory\n"
            "  gradient                               64 bytes\n"
            "  optimizer                              48 bytes\n"
            "  statistic                               8 bytes\n"
            "  weight                                 64 bytes\n"
            "  states, aligned                       384 bytes\n"
            "  arena of train                        256 bytes, lower bound 256\n"
            "  arena of evaluate                     128 bytes, lower bound 128\n"
            "  peak                                  640 bytes (640 B)\n"
            "work\n"
            "  train                    843 flops\n"
            "  evaluate                 144 flops\n");
}

}  // namespace kintsugi::lower
