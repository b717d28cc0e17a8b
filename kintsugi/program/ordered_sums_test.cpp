#include "kintsugi/program/ordered_sums.h"

#include <gtest/gtest.h>

namespace kintsugi::program::ordered_sums_test {
namespace {

Instruction collective(Collective kind, BufferId b, std::vector<mesh::Factor> group) {
  Instruction i = {.kind = Kind::collective, .collective = kind, .ins = {b}, .outs = {b}};
  i.group = std::move(group);
  return i;
}

// Space for the largest reduction of each channel; gathers and messages need none.
TEST(OrderedSums, APlaceForEachChannel) {
  Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 2}, {.name = "tensor", .size = 3}});
  p.on_device = true;
  for (const int64_t elements : {100, 1000, 10'000})
    p.buffers.push_back({.name = "x", .type = {{{"n", elements}}, tensor::DType::f32}});
  p.bodies.resize(2);
  p.bodies[0].instructions = {collective(Collective::all_reduce, 0, {0}), collective(Collective::all_gather, 2, {0}),
                              collective(Collective::send, 2, {0, 1})};
  p.bodies[1].instructions = {collective(Collective::reduce_scatter, 1, {0}),
                              collective(Collective::all_reduce, 0, {1}), collective(Collective::all_reduce, 0, {1})};
  p.bodies[1].instructions[2].channel = "gradient sums";
  const OrderedSums sums = ordered_sums(p);
  ASSERT_EQ(sums.places.size(), 3u);
  EXPECT_EQ(sums.find({{0}, ""})->offset, 0);
  EXPECT_EQ(sums.find({{0}, ""})->bytes, 4096);  // 4000 and 16 for each of two
  EXPECT_EQ(sums.find({{1}, ""})->offset, 4096);
  EXPECT_EQ(sums.find({{1}, ""})->bytes, 512);  // 400 and 48
  EXPECT_EQ(sums.find({{0, 1}, ""}), nullptr);
  EXPECT_EQ(sums.find({{1}, "gradient sums"})->offset, 4608);
  EXPECT_EQ(sums.bytes, 5120);
}

}  // namespace
}  // namespace kintsugi::program::ordered_sums_test
