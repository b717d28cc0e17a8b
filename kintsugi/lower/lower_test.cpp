// A model small enough to read, from its graphs to its program: the text after each pass.
#include "kintsugi/lower/lower.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/reference_kernels.h"
#include "kintsugi/lower/partition/partition.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/lower/step_test.h"
#include "kintsugi/program/print.h"

namespace kintsugi::lower::lower_test {
namespace {

// y = gelu(x w + b), as a step with one layer; the loss is the sum of y.
struct Gelu : TestStep {
  StateId w = weight("w", {{"embed", 3}, {"ffn", 4}}), b = weight("b", {{"ffn", 4}});

  Gelu() {
    finish([this](Graph& g) {
      const ValueId x = g.input("x", {{{"batch", 2}, {"embed", 3}}, DType::f32});
      const ValueId h = g.add({g.contract(x, g.read(w), "batch ffn", DType::f32), g.read(b)});
      return g.op("gelu", {h}, {{"form", "tanh"}});
    });
    evaluate.make("output", {0}, {}, {{"name", "seen"}});
  }
};

const plan::Plan kOneRank = {.mesh = {{{"data", 1}}}, .rules = {}};

}  // namespace

TEST(Partition, EveryOperationOfAGraphIsAnInstruction) {
  const Gelu step;
  program::Program p;
  partition(p, step.source(), kOneRank);
  EXPECT_EQ(text(p),
            "forward:\n"
            "  contract = contract(x, w)\n"
            "  add = add(contract, b)\n"
            "  gelu = gelu(add)\n"
            "  sum = sum(gelu)\n"
            "  +loss = accumulate(sum)\n"
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  gelu_grad = gelu_grad(add, broadcast)\n"
            "  sum = sum(gelu_grad)\n"
            "  +b.gradient = accumulate(sum)\n"
            "  contract = contract(gelu_grad, w)\n"
            "  contract = contract(x, gelu_grad)\n"
            "  +w.gradient = accumulate(contract)\n"
            "update:\n"
            "  fill = fill()\n"
            "  b.0.0, b.0.1 = sgd(bucket w+1, bucket w+1.gradient, bucket w+1.m, fill, fill)\n"
            "  bucket w+1 = accumulate(b.0.0)\n"
            "  bucket w+1.m = accumulate(b.0.1)\n"
            "evaluate:\n"
            "  contract = contract(x, w)\n"
            "  add = add(contract, b)\n"
            "  gelu = gelu(add)\n"
            "  sum = sum(gelu)\n"
            "  +loss = accumulate(sum)\n");
  // Each graph has a buffer per input; all graphs share one per state.
  std::string states, inputs;
  for (const program::StateInfo& s : p.states)
    states +=
        fmt::format("{} {} {}{}; ", name_of(s.kind), s.name,
                    s.init.kind == tensor::Init::Kind::constant ? "constant" : "normal", s.saved ? "" : " unsaved");
  for (const program::Buffer& b : p.buffers)
    if (!b.input.empty()) inputs += b.name + " is " + b.input + (b.output.empty() ? "" : ", output " + b.output) + "; ";
  EXPECT_EQ(states,
            "weight w constant; weight b constant; statistic loss constant unsaved; gradient b.gradient constant; "
            "gradient w.gradient constant; optimizer b.m constant; optimizer w.m constant; ");
  EXPECT_EQ(inputs, "x is x; x is x, output seen; ");
  const program::Instruction& product = p.bodies[0].instructions[0];
  EXPECT_EQ(product.cost.flops, 2 * 2 * 3 * 4);
  EXPECT_EQ(product.cost.memory_bytes, 4 * (6 + 12 + 8));
  EXPECT_EQ(product.phase, program::Phase::forward);
}

// Views and caches alias memory; a cache written in place is not written again.
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
  partition(p, {.states = states, .passes = {{program::Work::decode, &g}}}, kOneRank);
  EXPECT_EQ(text(p), "decode:\n  cache_write = cache_write(keys, k)\n  scale = scale(cache_write)\n");
  EXPECT_EQ(p.bodies[0].position_dim, "seq");
  const program::Instruction& write = p.bodies[0].instructions[0];
  EXPECT_EQ(p.root(write.outs[0]), p.state("keys")->buffer);
  const BufferId renamed = p.bodies[0].instructions[1].ins[0];
  EXPECT_EQ(p.root(renamed), p.state("keys")->buffer);
  EXPECT_EQ(to_string(p.buffer(renamed).type.shape), "[batch:1 seq:4 kv_heads:1 head_dim:2]");
}

TEST(Lower, APassAfterTheOther) {
  const Gelu step;
  const auto kernels = kernels::reference_kernels();
  std::string names, fused;
  const std::vector<program::Program> stages = lower(step.source(), {.plan = kOneRank, .kernels = *kernels},
                                                     [&](std::string_view name, const program::Program& now) {
                                                       names += std::string(name) + " ";
                                                       if (name == "fuse") fused = text(now);
                                                     });
  EXPECT_EQ(names,
            "partition prefetch fuse join_columns split_interior workspace schedule overlap offload move_gradients "
            "join_lists "
            "memory shorten group_launches route place_waits ");
  EXPECT_EQ(fused,
            "forward:\n"
            "  gelu, add = contract(x, w, b)\n"
            "  +loss = sum(gelu)\n"
            "backward:\n"
            "  fill = fill()\n"
            "  broadcast = broadcast(fill)\n"
            "  gelu_grad = gelu_grad(add, broadcast)\n"
            "  +b.gradient = sum(gelu_grad)\n"
            "  contract = contract(gelu_grad, w)\n"
            "  +w.gradient = contract(x, gelu_grad)\n"
            "update:\n"
            "  fill = fill()\n"
            "  bucket w+1, bucket w+1.m = sgd(bucket w+1, bucket w+1.gradient, bucket w+1.m, fill, fill)\n"
            "evaluate:\n"
            "  gelu = contract(x, w, b)\n"
            "  +loss = sum(gelu)\n");
  const program::Program& p = stages[0];
  const std::string all = program::print(p);
  EXPECT_EQ(all.substr(all.find("body backward.first")),
            "body backward.first\n"
            "     0 #9 fill[] fp64 = fill()  value=1   1 flops, 8 bytes\n"
            "     1 #10 broadcast[batch:2 ffn:4] fp32 = broadcast(#9)   8 flops, 40 bytes\n"
            "     2 #11 gelu_grad[batch:2 ffn:4] fp32 = gelu_grad(#5, #10)  form=tanh   128 flops, 96 bytes\n"
            "     3 #14 b.gradient[ffn:4] fp32 = sum(#11)   8 flops, 48 bytes\n"
            "     4 #15 contract[batch:2 embed:3] fp32 = contract(#11, #2)  dims=\"batch embed\" dtype=fp32   48 "
            "flops, 104 bytes\n"
            "     5 #17 w.gradient[embed:3 ffn:4] fp32 = contract(#0, #11)  dims=\"embed ffn\" dtype=fp32   48 flops, "
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
            "  gradient                             8192 bytes\n"
            "  optimizer                            8192 bytes\n"
            "  statistic                               8 bytes\n"
            "  weight                               8192 bytes\n"
            "  states, aligned                     24640 bytes\n"
            "  arena of train                        256 bytes, lower bound 256\n"
            "  arena of evaluate                     128 bytes, lower bound 128\n"
            "  peak                                24896 bytes (24.3 KiB)\n"
            "work\n"
            "  train                    13059 flops\n"
            "  evaluate                 144 flops\n");
}

}  // namespace kintsugi::lower::lower_test
