// A small program of four ranks as text: splits, views, collectives, waits, and its traffic.
#include "kintsugi/program/communication.h"

#include <gtest/gtest.h>

#include "kintsugi/program/print.h"

namespace kintsugi::program::communication_test {
namespace {

using tensor::DType;

// data=4 tensor=2; two layers, each with a gather of its weights and a sum of its output, in two micro-batches.
Program sample() {
  Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 4}, {.name = "tensor", .size = 2, .zigzag = {"seq"}}});
  const mesh::Factor outer = 0, inner = 1, tensor = 2;
  const auto add = [&](std::string name, tensor::Shape whole, const mesh::Layout& layout, Region region) {
    p.buffers.push_back({.name = std::move(name),
                         .type = {mesh::local_shape(p.mesh, whole, layout), DType::f32},
                         .region = region,
                         .offset = 0,
                         .whole = whole,
                         .layout = layout});
    return static_cast<BufferId>(p.buffers.size()) - 1;
  };
  const auto start = [&](Collective kind, BufferId in, BufferId out, std::vector<mesh::Factor> over, int event) {
    Instruction i = {.kind = Kind::collective, .collective = kind, .ins = {in}, .outs = {out}};
    i.group = std::move(over);
    i.reduction = program::Reduction::sum;
    i.event = event;
    return i;
  };
  mesh::Layout flat, batch, parts;
  flat.set("flat", {outer, inner});
  batch.set("batch", {outer});
  batch.set("seq", {tensor});
  parts = batch;
  parts.set("seq", {});
  parts.set_part(tensor, mesh::Combiner::sum);
  Body body = {.name = "forward", .instructions = {}};
  for (int layer : {0, 1}) {
    const std::string name = "layer" + std::to_string(layer) + ".ffn.weight";
    const BufferId shard = add("bucket " + name, {{"flat", 4096}}, flat, Region::state),
                   gathered = add("bucket " + name, {{"flat", 4096}}, {}, Region::arena),
                   made = add("contract.parts", {{"batch", 4}, {"seq", 8}, {"embed", 24}}, parts, Region::arena),
                   sum = add("contract", {{"batch", 4}, {"seq", 8}, {"embed", 24}}, batch, Region::arena);
    Instruction gather = start(Collective::all_gather, shard, gathered, {outer, inner}, 2 * layer);
    gather.cost.wire_bytes = 4096 * 3;
    gather.reason = "flat split over data, needed whole, by contract";
    Instruction reduce = start(Collective::reduce_scatter, made, sum, {tensor}, 2 * layer + 1);
    reduce.cost.wire_bytes = 768;
    reduce.reason = "partial over tensor, needed split along seq, by " + name;
    for (Instruction i : {gather, reduce}) {
      body.instructions.push_back(i);
      i.kind = Kind::wait;
      body.instructions.push_back(std::move(i));
    }
  }
  p.bodies = {std::move(body)};
  // Views and a message.
  p.buffers.push_back({.name = "weight", .type = {{{"n", 16}}, DType::f32}, .same_as = 1, .shift = 64});
  p.buffers.push_back({.name = "own", .type = {{{"n", 16}}, DType::f32}, .same_as = 1, .part = {outer, inner}});
  Buffer travels = p.buffers[3];
  travels.ring = {tensor};
  travels.turn = 1;
  p.buffers.push_back(std::move(travels));
  Instruction send = start(Collective::send, 8, 8, {inner}, 4);
  send.outs.clear();
  send.peer = 1;
  send.cost.wire_bytes = 64;
  send.phase = program::Phase::update;
  send.reason = "on one stage, needed on another";
  p.bodies.push_back({.name = "update", .instructions = {send, send}});
  p.bodies[1].instructions[1].kind = Kind::wait;
  p.lists = {{.step = program::Step::train, .calls = {{0, 0}, {0, 1}, {1, -1}}}};
  return p;
}

}  // namespace

TEST(Communication, OfAStep) {
  EXPECT_EQ(print_communication(sample()),
            "communication of a step (data=4 tensor=2), in bytes that each rank sends\n"
            "    a step   calls    a call\n"
            "  51.1 KiB       9            all\n"
            "  48.0 KiB       4  12.0 KiB  all_gather over data, forward\n"
            "    bucket layer*.ffn.weight\n"
            "    flat split over data, needed whole, by contract\n"
            "   3.0 KiB       4     768 B  reduce_scatter over tensor, forward\n"
            "    contract\n"
            "    partial over tensor, needed split along seq, by layer*.ffn.weight\n"
            "      64 B       1      64 B  send over data.1, update\n"
            "    weight\n"
            "    on one stage, needed on another\n");
  Program p = sample();
  p.lists[0].calls.clear();
  EXPECT_EQ(print_communication(p), "communication of a step: none (data=4 tensor=2)\n");
}

TEST(Communication, AsInstructions) {
  const Program p = sample();
  const std::string all = print(p);
  EXPECT_EQ(all.substr(0, all.find("memory\n")), R"(buffers
  #0 bucket layer0.ffn.weight[flat:1024/data] fp32 at state+0, 4096 bytes
  #1 bucket layer0.ffn.weight[flat:4096] fp32 at arena+0, 16384 bytes
  #2 contract.parts[batch:2/data.0 seq:8 embed:24] fp32 partial over tensor at arena+0, 1536 bytes
  #3 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32 at arena+0, 768 bytes
  #4 bucket layer1.ffn.weight[flat:1024/data] fp32 at state+0, 4096 bytes
  #5 bucket layer1.ffn.weight[flat:4096] fp32 at arena+0, 16384 bytes
  #6 contract.parts[batch:2/data.0 seq:8 embed:24] fp32 partial over tensor at arena+0, 1536 bytes
  #7 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32 at arena+0, 768 bytes
  #8 weight[n:16] fp32 is #1 from byte 64
  #9 own[n:16] fp32 is #1, the own part over data
  #10 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32, of the rank 1 further along tensor at arena+0, 768 bytes
body forward
     0 start all_gather #0 -> #1 bucket layer0.ffn.weight[flat:4096] fp32 over data  12.0 KiB sent, "flat split over data, needed whole, by contract"
     1 wait for 0: all_gather -> #1 bucket layer0.ffn.weight[flat:4096] fp32
     2 start reduce_scatter #2 -> #3 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32 over tensor  sum, 768 B sent, "partial over tensor, needed split along seq, by layer0.ffn.weight"
     3 wait for 2: reduce_scatter -> #3 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32
     4 start all_gather #4 -> #5 bucket layer1.ffn.weight[flat:4096] fp32 over data  12.0 KiB sent, "flat split over data, needed whole, by contract"
     5 wait for 4: all_gather -> #5 bucket layer1.ffn.weight[flat:4096] fp32
     6 start reduce_scatter #6 -> #7 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32 over tensor  sum, 768 B sent, "partial over tensor, needed split along seq, by layer1.ffn.weight"
     7 wait for 6: reduce_scatter -> #7 contract[batch:2/data.0 seq:4/tensor(zigzag) embed:24] fp32
body update
     0 start send #8 weight[n:16] fp32 over data.1, place 1  64 B sent, "on one stage, needed on another"
     1 wait for 0: send #8 weight[n:16] fp32
calls train
  forward micro-batch 0
  forward micro-batch 1
  update
)");
  EXPECT_EQ(all.substr(all.find("work\n")),
            "work\n"
            "  train                    0 flops\n"
            "sent by each rank in train\n"
            "  all_gather over data                49152 bytes, 4 calls\n"
            "  send over data.1                       64 bytes, 1 call\n"
            "  reduce_scatter over tensor             3072 bytes, 4 calls\n");
}

// Before waits are placed, and with a wait that has lost its collective.
TEST(Communication, WithoutWaits) {
  Program p = sample();
  p.bodies[0].instructions.resize(1);
  p.bodies[0].instructions[0].event = -1;
  p.bodies[0].instructions[0].channel = "gradient sums";
  p.bodies[1].instructions.erase(p.bodies[1].instructions.begin());
  const std::string all = print(p);
  const size_t begin = all.find("body forward\n");
  EXPECT_EQ(
      all.substr(begin, all.find("calls") - begin),
      "body forward\n"
      "     0 all_gather #0 -> #1 bucket layer0.ffn.weight[flat:4096] fp32 over data, channel \"gradient sums\"  "
      "12.0 KiB sent, \"flat split over data, needed whole, by contract\"\n"
      "body update\n"
      "     0 wait for an earlier call: send #8 weight[n:16] fp32\n");
}

}  // namespace kintsugi::program::communication_test
