#include "kintsugi/lower/fuse/join_lists.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::join_lists_test {
namespace {

// Sums of squares of `count` gradients, with `between` inserted between the first and the second.
template <typename F>
std::string joined(int count, bool on_device, const F& between) {
  Maker m;
  m.p.on_device = on_device;
  m.body("update");
  for (int i = 0; i < count; ++i) {
    const BufferId g = m.state(fmt::format("g{}", i), {{"flat", 2048}}, program::StateKind::gradient),
                   n = m.arena(fmt::format("n{}", i), {{"block", 2}}, DType::f64);
    m.call("sum_squares", {g}, {n}, i).cost = {.flops = 10, .memory_bytes = 100};
    if (i == 0) between(m, g, n);
  }
  join_lists(m.p, ops::operations());
  std::string t;
  for (const program::Instruction& i : m.p.bodies[0].instructions)
    t += fmt::format("{} of {}, layer {}, {} flops, {} bytes\n", i.kernel, i.ins.size(), i.layer, i.cost.flops,
                     i.cost.memory_bytes);
  return t;
}
void nothing(Maker&, BufferId, BufferId) {}

}  // namespace

TEST(JoinLists, NeighboursAreOne) {
  EXPECT_EQ(joined(3, true, nothing), "sum_squares of 3, layer -1, 30 flops, 300 bytes\n");
  EXPECT_EQ(joined(1, true, nothing), "sum_squares of 1, layer 0, 10 flops, 100 bytes\n");
}

TEST(JoinLists, AsManyAsAnInstructionHas) {
  EXPECT_EQ(joined(33, true, nothing),
            "sum_squares of 32, layer -1, 320 flops, 3200 bytes\nsum_squares of 1, layer 32, 10 flops, 100 bytes\n");
}

TEST(JoinLists, OnTheProcessorEachIsAlone) {
  EXPECT_EQ(joined(2, false, nothing),
            "sum_squares of 1, layer 0, 10 flops, 100 bytes\nsum_squares of 1, layer 1, 10 flops, 100 bytes\n");
}

TEST(JoinLists, WhatStandsBetweenStays) {
  EXPECT_EQ(joined(3, true,
                   [](Maker& m, BufferId g, BufferId) {
                     m.call("gelu", {g}, {m.arena("y", {{"flat", 2048}})});
                   }),
            "sum_squares of 1, layer 0, 10 flops, 100 bytes\ngelu of 1, layer 0, 0 flops, 0 bytes\n"
            "sum_squares of 2, layer -1, 20 flops, 200 bytes\n");
}

TEST(JoinLists, NotOfWhatTheOtherMakes) {
  EXPECT_EQ(joined(1, true,
                   [](Maker& m, BufferId, BufferId n) {
                     m.call("sum_squares", {n}, {m.arena("again", {{"block", 1}}, DType::f64)});
                   }),
            "sum_squares of 1, layer 0, 10 flops, 100 bytes\nsum_squares of 1, layer 0, 0 flops, 0 bytes\n");
}

}  // namespace kintsugi::lower::join_lists_test
