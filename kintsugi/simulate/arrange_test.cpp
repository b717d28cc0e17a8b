// Instructions arranged as in other software, on bodies of a few lines.
#include "kintsugi/simulate/arrange.h"

#include <gtest/gtest.h>

#include <initializer_list>

namespace kintsugi::simulate::arrange_test {

using program::BufferId;
using program::Collective;
using program::Instruction;
using program::Kind;
using program::Program;
using tensor::DType;
using tensor::Shape;

class Body {
 public:
  Body() { p_.bodies = {{.name = "backward", .instructions = {}, .work = program::Work::backward}}; }

  BufferId value(const Shape& shape) {
    p_.buffers.push_back({.name = "value", .type = {shape, DType::f32}});
    return static_cast<BufferId>(p_.buffers.size() - 1);
  }

  BufferId kernel(const char* name, std::initializer_list<BufferId> ins, const Shape& out) {
    Instruction i;
    i.kernel = name;
    i.ins = ins;
    i.outs = {value(out)};
    for (const BufferId b : i.ins) i.cost.memory_bytes += static_cast<double>(p_.buffer(b).bytes());
    i.cost.memory_bytes += static_cast<double>(p_.buffer(i.outs[0]).bytes());
    p_.bodies[0].instructions.push_back(i);
    return i.outs[0];
  }

  void start(Collective collective, BufferId in) {
    Instruction i;
    i.kind = Kind::collective;
    i.collective = collective;
    i.ins = {in};
    i.outs = {in};
    p_.bodies[0].instructions.push_back(i);
  }

  std::vector<Arranged> arranged(const Software& software) { return simulate::arranged(p_, p_.bodies[0], software); }

 private:
  Program p_;
};

std::string names(const std::vector<Arranged>& list) {
  std::string all;
  for (const Arranged& a : list)
    all += (a.instruction->kind == Kind::compute ? a.instruction->kernel : "start") + (a.elsewhere ? "- " : " ");
  return all;
}

const Shape kX = {{"batch", 1}, {"seq", 10}, {"embed", 6}};
const Shape kY = {{"batch", 1}, {"seq", 10}, {"out", 3}};
const Shape kWeight = {{"embed", 6}, {"out", 3}};

TEST(Arranged, IsTheBodyForOurOwnSoftware) {
  Body b;
  const BufferId x = b.value(kX);
  b.kernel("dropout", {b.kernel("add", {x, x}, kX)}, kX);
  EXPECT_EQ(names(b.arranged(softwares()[0])), "add dropout ");
}

TEST(Arranged, JoinsProductsOfOneOperand) {
  Body b;
  const BufferId x = b.value(kX), w = b.value(kWeight);
  for (int i = 0; i < 3; ++i) b.kernel("contract", {x, w}, kY);
  const std::vector<Arranged> list = b.arranged({.joins_products = true});
  EXPECT_EQ(names(list), "contract contract- contract- ");
  ASSERT_TRUE(list[0].product.has_value());
  EXPECT_EQ(list[0].product->rows, 10);
  EXPECT_EQ(list[0].product->columns, 9);
  EXPECT_EQ(list[0].product->depth, 6);
}

// Each followed by its weight gradient; the sum precedes these, and a collective of it starts there.
TEST(Arranged, JoinsProductsThatAreAdded) {
  Body b;
  const BufferId w = b.value(kWeight), x = b.value(kX);
  const BufferId dy1 = b.value(kY), dy2 = b.value(kY);
  const BufferId dx1 = b.kernel("contract", {dy1, w}, kX);
  b.kernel("contract", {x, dy1}, kWeight);
  const BufferId dx2 = b.kernel("contract", {dy2, w}, kX);
  b.kernel("contract", {x, dy2}, kWeight);
  b.start(Collective::all_reduce, b.kernel("add", {dx1, dx2}, kX));
  Software software = {.joins_products = true};
  std::vector<Arranged> list = b.arranged(software);
  EXPECT_EQ(names(list), "add contract- contract contract- contract- start ");
  ASSERT_TRUE(list[0].product.has_value());
  EXPECT_EQ(list[0].product->rows, 10);
  EXPECT_EQ(list[0].product->columns, 6);
  EXPECT_EQ(list[0].product->depth, 2 * 3);
  EXPECT_EQ(list[2].product->rows, 6);
  EXPECT_EQ(list[2].product->columns, 6);
  EXPECT_EQ(list[2].product->depth, 10);
  software.starts_early = true;
  EXPECT_EQ(names(b.arranged(software)), "add start contract- contract contract- contract- ");
}

// A collective passes one matmul, and no other collective.
TEST(Arranged, StartsCollectivesEarly) {
  Body b;
  const BufferId w = b.value(kWeight), x = b.value(kX), dy = b.value(kY);
  b.kernel("contract", {dy, w}, kX);
  b.kernel("contract", {dy, w}, kX);
  b.start(Collective::all_gather, x);
  b.start(Collective::all_gather, x);
  EXPECT_EQ(names(b.arranged({.starts_early = true})), "contract start start contract ");
}

TEST(Arranged, KeepsValuesOfAChainInRegisters) {
  Body b;
  const BufferId x = b.value(kX), residual = b.value(kX), bias = b.value({{"embed", 6}});
  const BufferId biased = b.kernel("add", {x, bias}, kX);
  const BufferId dropped = b.kernel("dropout", {biased}, kX);
  b.kernel("add", {residual, dropped}, kX);
  std::vector<Arranged> list = b.arranged({.joins_elementwise = true});
  EXPECT_EQ(names(list), "add- dropout- add ");
  // It reads x, the bias and the residual, and writes the result: 3 values of 240 bytes, and 24.
  EXPECT_EQ(list[2].instruction->cost.memory_bytes + list[2].more_bytes, 3 * 240 + 24);
  list = b.arranged({.joins_elementwise = true, .keeps_masks = true});
  EXPECT_EQ(list[2].instruction->cost.memory_bytes + list[2].more_bytes, 3 * 240 + 24 + 60) << "and the mask";
  // A value with another reader is written.
  b.kernel("gelu", {dropped}, kX);
  EXPECT_EQ(names(b.arranged({.joins_elementwise = true})), "add- dropout add gelu ");
}

TEST(Arranged, LeavesStacksOut) {
  Body b;
  const BufferId w = b.value(kWeight), x = b.value(kX), dy = b.value(kY);
  const BufferId dx = b.kernel("contract", {dy, w}, kX);
  b.kernel("contract", {x, dy}, kWeight);
  b.start(Collective::reduce_scatter, b.kernel("stack", {dx}, kX));
  EXPECT_EQ(names(b.arranged({.starts_early = true})), "contract contract stack start ");
  EXPECT_EQ(names(b.arranged({.starts_early = true, .sequence_first = true})), "contract start contract stack- ");
}

// x [10 x 6] times w [6 x 4]: 60 elements are read in 2 bytes and written twice in one.
TEST(Arrange, CastsOperandsTo8Bits) {
  Body b;
  const BufferId x = b.value(kX), w = b.value({{"embed", 6}, {"ffn", 4}});
  b.kernel("contract", {x, w}, {{"batch", 1}, {"seq", 10}, {"ffn", 4}});
  b.kernel("add", {x, x}, kX);
  const auto list = b.arranged({.fp8 = true});
  EXPECT_TRUE(list[0].fp8);
  EXPECT_EQ(list[0].cast_bytes, 4 * 60);
  EXPECT_FALSE(list[1].fp8);
  EXPECT_FALSE(b.arranged({})[0].fp8);
}

// Forward operations in the body of a backward pass are recomputation.
TEST(Arrange, KeepsAttentionAndEachSecondProduct) {
  Body b;
  const BufferId x = b.value(kX), w = b.value({{"embed", 6}, {"ffn", 4}});
  const Shape y = {{"batch", 1}, {"seq", 10}, {"ffn", 4}};
  b.kernel("contract", {x, w}, y);
  b.kernel("attention", {x, x, x}, kX);
  b.kernel("contract", {x, w}, y);
  b.kernel("contract", {x, w}, y);
  EXPECT_EQ(names(b.arranged({.saves_every_second = true})), "contract attention- contract- contract ");
  EXPECT_EQ(names(b.arranged({})), "contract attention contract contract ");
}

TEST(Arrange, AddsTheBytesOfChains) {
  Body b;
  const BufferId x = b.value(kX);
  b.kernel("rms_norm", {x}, kX);
  b.kernel("rms_norm_grad", {x}, kX);
  b.kernel("rotary", {x}, kX);
  const auto list = b.arranged({.norm_bytes = 32, .norm_grad_bytes = 68, .rotary_bytes = 16});
  EXPECT_EQ(list[0].more_bytes, 32 * 60);
  EXPECT_EQ(list[1].more_bytes, 68 * 60);
  EXPECT_EQ(list[2].more_bytes, 16 * 60);
}

}  // namespace kintsugi::simulate::arrange_test
