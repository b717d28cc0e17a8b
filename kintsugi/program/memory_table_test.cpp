#include "kintsugi/program/memory_table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kintsugi/program/by_name_test.h"

namespace kintsugi::program::memory_table_test {
namespace {

// Buffers of u8, so that a size is a count.
class Made {
 public:
  Program p;

  BufferId buffer(const std::string& name, int64_t bytes, Region region = Region::arena) {
    p.buffers.push_back({.name = name, .type = {{{"byte", bytes}}, tensor::DType::u8}, .region = region, .offset = 0});
    return static_cast<BufferId>(p.buffers.size()) - 1;
  }
  void state(StateKind kind, int64_t bytes, int layer = 0, bool replica = false) {
    const BufferId b = buffer(std::string(name_of(kind)), bytes, Region::state);
    p.buffer(b).offset = p.state_bytes;
    p.state_bytes += p.aligned(bytes);
    StateInfo info;
    info.name = name_of(kind);
    info.kind = kind;
    info.buffer = b;
    info.whole = {{{"byte", 3 * bytes}}, tensor::DType::u8};
    info.layer = layer;
    info.replica = replica;
    p.states.push_back(info);
  }
  int body(const std::string& name, std::vector<Instruction> list, int variant_of = -1) {
    p.bodies.push_back({.name = name,
                        .instructions = std::move(list),
                        .work = work_named(name),
                        .role = role_named(name),
                        .variant_of = variant_of});
    return static_cast<int>(p.bodies.size()) - 1;
  }
  // The live memory at each instant: "call.instruction activations+communication+workspace".
  std::string over(size_t most = 100) const {
    std::string text;
    for (const Instant& m : memory_over(p, p.lists[0], most))
      text += fmt::format("{}.{} {}+{}+{}\n", m.call, m.instruction, m.live.activations, m.live.communication,
                          m.live.workspace);
    return text;
  }
};

Instruction kernel(std::vector<BufferId> ins, std::vector<BufferId> outs, BufferId workspace = kNoBuffer) {
  Instruction i;
  i.kernel = "add";
  i.ins = std::move(ins);
  i.outs = std::move(outs);
  i.workspace = workspace;
  return i;
}

Instruction moves(Kind kind, const std::string& name, std::vector<BufferId> ins, std::vector<BufferId> outs,
                  int event) {
  Instruction i = kernel(std::move(ins), std::move(outs));
  i.kind = kind;
  i.collective = collective_named(name);
  i.event = event;
  return i;
}

// Two micro-batches: x is received one call early; y = f(x) is sent, and awaited after the backward call, which reads x
// again.
Made pipeline() {
  Made made;
  const BufferId x = made.buffer("x", 100), y = made.buffer("y", 10), t = made.buffer("t", 7), u = made.buffer("u", 7),
                 w = made.buffer("w", 1000);
  const int receive = made.body("forward.receive", {moves(Kind::collective, "receive", {}, {x}, 0)});
  const int forward = made.body("forward", {moves(Kind::wait, "receive", {}, {x}, 0), kernel({x}, {t}, w),
                                            kernel({x, t}, {y}), moves(Kind::collective, "send", {y}, {}, 1)});
  const int backward = made.body("backward", {kernel({x}, {u})});
  const int sent = made.body("forward.sent", {moves(Kind::wait, "send", {y}, {}, 1)});
  made.p.lists.push_back(
      {.step = Step::train,
       .calls =
           {{receive, 0}, {forward, 0}, {receive, 1}, {backward, 0}, {sent, 0}, {forward, 1}, {backward, 1}, {sent, 1}},
       .arena_bytes = 4096});
  made.p.arena_bytes = 4096;
  return made;
}

TEST(MemoryTable, EachInstantOfAPipelineSaysWhatMovesAndWhatStays) {
  EXPECT_EQ(pipeline().over(),
            "0.0 0+100+0\n"  // x is under way
            "1.0 0+100+0\n"  // and received within this call
            "1.1 7+100+1000\n"
            "1.2 7+110+0\n"  // y is made only to be sent
            "1.3 0+110+0\n"
            "2.0 100+110+0\n"  // now x of micro-batch 0 is an activation; that of 1 is under way
            "3.0 107+110+0\n"
            "4.0 0+110+0\n"
            "5.0 0+100+0\n"
            "5.1 7+100+1000\n"
            "5.2 7+110+0\n"
            "5.3 0+110+0\n"
            "6.0 107+10+0\n"
            "7.0 0+10+0\n");
}

TEST(MemoryTable, LongListsAreShownByCallsAndByGroupsOfCalls) {
  EXPECT_EQ(pipeline().over(13),
            "0.0 0+100+0\n1.1 7+100+1000\n2.0 100+110+0\n3.0 107+110+0\n4.0 0+110+0\n5.1 7+100+1000\n6.0 107+10+0\n"
            "7.0 0+10+0\n");
  EXPECT_EQ(pipeline().over(2), "1.1 7+100+1000\n5.1 7+100+1000\n");
}

TEST(MemoryTable, AddsUpToTheBytesOfTheProgram) {
  Made made = pipeline();
  made.state(StateKind::weight, 100, -1);
  made.state(StateKind::weight, 60, 3);
  made.state(StateKind::weight, 5, 9, true);
  made.state(StateKind::gradient, 70);
  made.state(StateKind::level, 1);
  made.state(StateKind::optimizer, 33);
  made.state(StateKind::statistic, 8);
  made.state(StateKind::cache, 64);
  made.p.arena_bytes = 5000;  // of another list
  const MemoryTable t = memory_table(made.p);
  EXPECT_EQ(t.weights, 165);
  EXPECT_EQ(t.gradients, 71);
  EXPECT_EQ(t.optimizer, 33);
  EXPECT_EQ(t.statistics, 8);
  EXPECT_EQ(t.caches, 64);
  EXPECT_EQ(t.activations, 7);
  EXPECT_EQ(t.communication, 100);
  EXPECT_EQ(t.workspace, 1000);
  EXPECT_EQ(t.others, 904);
  EXPECT_EQ(t.packing, (made.p.state_bytes - 341) + (4096 - 1107));
  EXPECT_EQ(t.total(), made.p.bytes());
  EXPECT_EQ(t.peak.call, 1u);
  EXPECT_EQ(t.peak.instruction, 1u);
  EXPECT_EQ(t.peak.live.aligned, 64 + 128 + 1024);
  const ModelShare share = model_share(made.p);
  EXPECT_EQ(share.layers, (std::vector<int>{-1, 3}));
  EXPECT_EQ(share.parameters, 3 * 160);
}

// A gathered weight counts as communication in the call that gathers it; a sum does while it is reduced.
TEST(MemoryTable, CollectivesWithinACall) {
  Made made;
  const BufferId part = made.buffer("part", 1, Region::state), w = made.buffer("w", 10), x = made.buffer("x", 100),
                 y = made.buffer("y", 1000);
  made.body("forward", {moves(Kind::collective, "all_gather", {part}, {w}, 0), kernel({}, {x}),
                        moves(Kind::wait, "all_gather", {part}, {w}, 0), kernel({w}, {x}),
                        moves(Kind::collective, "all_reduce", {x}, {x}, 1), kernel({w}, {y}),
                        moves(Kind::wait, "all_reduce", {x}, {x}, 1), kernel({x, y}, {y})});
  made.p.lists.push_back({.step = program::Step::train, .calls = {{0, 0}}, .arena_bytes = 2048});
  EXPECT_EQ(made.over(),
            "0.0 0+10+0\n0.1 100+10+0\n0.2 100+10+0\n0.3 100+10+0\n0.4 0+110+0\n0.5 1000+110+0\n0.6 1000+100+0\n"
            "0.7 1100+0+0\n");
}

// An arena accumulator counts as a gradient, except while it is communicated.
TEST(MemoryTable, GradientsOfTheArena) {
  Made made;
  const BufferId x = made.buffer("x", 1), g = made.buffer("g", 10), view = made.buffer("view", 10);
  made.p.buffer(view).same_as = g;
  made.p.buffer(g).output = "g";
  made.p.states.push_back({.name = "g", .buffer = g, .kind = StateKind::gradient, .whole = made.p.buffer(g).type});
  made.body("backward", {kernel({}, {x}), kernel({x}, {view}), moves(Kind::collective, "all_reduce", {g}, {g}, 0),
                         kernel({}, {x}), moves(Kind::wait, "all_reduce", {g}, {g}, 0), kernel({}, {x})});
  made.body("update", {kernel({g}, {x}), kernel({x}, {x})});
  made.p.lists.push_back({.step = Step::train, .calls = {{0, 0}, {1, -1}}, .arena_bytes = 4096});
  made.p.arena_bytes = 4096;
  EXPECT_EQ(made.over(), "0.0 1+0+0\n0.1 1+0+0\n0.2 1+10+0\n0.3 1+10+0\n0.4 1+10+0\n0.5 1+0+0\n1.0 1+0+0\n1.1 1+0+0\n");
  std::vector<int64_t> gradients;
  for (const Instant& i : memory_over(made.p, made.p.lists[0], 100)) gradients.push_back(i.live.gradients);
  EXPECT_EQ(gradients, (std::vector<int64_t>{0, 10, 0, 0, 0, 10, 10, 10}));
  const MemoryTable t = memory_table(made.p);
  EXPECT_EQ(t.gradients, 0);
  EXPECT_EQ(t.live_gradients, 10);
  EXPECT_EQ(t.activations, 1);
  EXPECT_EQ(t.total(), made.p.bytes());
}

TEST(MemoryTable, InputsLiveFromTheBeginningAndOutputsUntilTheEnd) {
  Made made;
  const BufferId in = made.buffer("in", 1), out = made.buffer("out", 10), t = made.buffer("t", 100);
  made.p.buffer(in).input = "tokens";
  made.p.buffer(out).output = "logits";
  made.body("prefill", {kernel({}, {t}), kernel({in, t}, {out}), kernel({}, {t})});
  made.body("update", {kernel({}, {t})});
  made.p.lists.push_back({.step = program::Step::prefill, .calls = {{0, 0}, {1, 0}}, .arena_bytes = 4096});
  EXPECT_EQ(made.over(), "0.0 101+0+0\n0.1 111+0+0\n0.2 110+0+0\n1.0 110+0+0\n");
}

}  // namespace
}  // namespace kintsugi::program::memory_table_test
