// Costs computed by hand, on a cluster with round figures.
#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/small_cluster_test.h"
#include "kintsugi/simulate/transfer_costs.h"

namespace kintsugi::simulate::costs_test {

using program::Collective;
using tensor::DType;
using tensor::Shape;

TEST(ProductSize, IsFoundByNames) {
  const ProductSize s = product_size(Shape({{"batch", 2}, {"seq", 3}, {"head", 4}, {"dim", 5}}),
                                     Shape({{"head", 4}, {"dim", 5}, {"out", 7}}),
                                     Shape({{"batch", 2}, {"seq", 3}, {"head", 4}, {"out", 7}}));
  EXPECT_EQ(s.rows, 6);
  EXPECT_EQ(s.columns, 7);
  EXPECT_EQ(s.depth, 5);
  EXPECT_EQ(s.times, 4);
  EXPECT_EQ(s.flops(), 2 * 6 * 7 * 5 * 4);
  const Shape x({{"seq", 6}, {"embed", 5}}), wide({{"seq", 6}, {"columns", 12}}), dw({{"embed", 5}, {"columns", 4}});
  EXPECT_EQ(product_size(x, wide, dw), (ProductSize{.rows = 5, .columns = 4, .depth = 6}));
}

// 10 units of 10 FLOP/s; a tile of 2 x 2 with depth 1000 takes 8000 FLOPs, 800 s.
TEST(Products, RunInWaves) {
  Cluster c = small_cluster();
  c.device.memory_bandwidth = 1e9;
  const KernelCosts costs(c, softwares()[0]);
  const auto seconds = [&](double rows, double columns) {
    return costs.product({.rows = rows, .columns = columns, .depth = 1000}, DType::f32);
  };
  EXPECT_DOUBLE_EQ(seconds(2, 2), 800);
  EXPECT_DOUBLE_EQ(seconds(2, 20), 800);   // 10 tiles
  EXPECT_DOUBLE_EQ(seconds(2, 21), 1600);  // 11: a second wave
  EXPECT_DOUBLE_EQ(seconds(1, 1), 800);    // part of a tile
  c.products.depth = 500;
  c.products.start = 3;
  EXPECT_DOUBLE_EQ(seconds(2, 2), 1203);
  c.products.share = 0.5;
  EXPECT_DOUBLE_EQ(seconds(2, 2), 2403);
  EXPECT_THROW(costs.product({}, DType::bf16), base::UserError);
}

// A tile of r x c reads 4 (r + c) bytes for each 2 r c FLOPs, so that a unit with 1 byte/s makes r c / (2 (r + c))
// FLOP/s.
TEST(Products, OfSmallTilesWaitForTheCache) {
  Cluster c = small_cluster();
  c.device.memory_bandwidth = 1e9;
  c.device.cache_bandwidth = 10;
  const auto seconds = [&] {
    return KernelCosts(c, softwares()[0]).product({.rows = 64, .columns = 64, .depth = 1000}, DType::f32);
  };
  c.products.tiles = {{64, 64}};  // 16 FLOP/s, but the unit has 10
  EXPECT_DOUBLE_EQ(seconds(), 64.0 * 64 * 2 * 1000 / 10);
  c.products.tiles = {{16, 16}};  // 16 tiles, two waves; 4 FLOP/s
  EXPECT_DOUBLE_EQ(seconds(), 2 * 16.0 * 16 * 2 * 1000 / 4);
  c.products.tiles = {{16, 16}, {64, 64}};
  EXPECT_DOUBLE_EQ(seconds(), 2 * 16.0 * 16 * 2 * 1000 / 4) << "the faster";
}

TEST(Products, LeaveUnitsToATransfer) {
  Cluster c = small_cluster();
  c.device.memory_bandwidth = 1e9;
  const KernelCosts costs(c, softwares()[0]);
  const ProductSize size = {.rows = 2, .columns = 20, .depth = 1000};  // 10 tiles
  EXPECT_DOUBLE_EQ(costs.product(size, DType::f32), 800);
  EXPECT_DOUBLE_EQ(costs.product(size, DType::f32, 1), 1600);
}

TEST(Products, AreNoFasterThanTheirBytes) {
  const Cluster c = small_cluster();
  // 1000 + 1000 + 1 elements of 4 bytes, at 10 bytes/s.
  EXPECT_DOUBLE_EQ(KernelCosts(c, softwares()[0]).product({.rows = 1, .columns = 1, .depth = 1000}, DType::f32), 800.4);
}

TEST(Kernels, TakeTheTimeOfTheirBytes) {
  Cluster c = small_cluster();
  c.device.kernel_start = 2;
  c.device.memory_share = 0.5;
  const KernelCosts costs(c, softwares()[0]);
  EXPECT_DOUBLE_EQ(costs.bytes(20), 6);
  EXPECT_DOUBLE_EQ(costs.bytes(0), 0);  // a view
}

// The first instruction of a launch pays its startup.
TEST(Kernels, StartOnceForAGroupThatOneLaunchPerforms) {
  Cluster c = small_cluster();
  c.device.kernel_start = 2;
  program::Instruction first, second;
  first.kernel = second.kernel = "add";
  first.cost.memory_bytes = second.cost.memory_bytes = 20;
  first.launch = 2, second.launch = 0;
  const KernelCosts costs(c, softwares()[0]);
  EXPECT_DOUBLE_EQ(costs.of({}, {.instruction = &first}).seconds, 4);
  EXPECT_DOUBLE_EQ(costs.of({}, {.instruction = &second}).seconds, 2);
}

// 1600 FLOPs at 10 units of 10 FLOP/s; 800 bytes at 10 bytes/s.
TEST(Kernels, ConvolutionsTakeTheTimeOfTheirOperationsOrBytes) {
  Cluster c = small_cluster();
  program::Program p;
  p.buffers.push_back({.name = "x", .type = {{{"batch", 1}}, DType::f32}});
  program::Instruction i;
  i.kernel = "convolution";
  i.ins = {0};
  i.cost = {.flops = 1600, .memory_bytes = 8, .cost_class = tensor::CostClass::product};
  const KernelTime arithmetic = KernelCosts(c, softwares()[0]).of(p, {.instruction = &i});
  EXPECT_EQ(arithmetic.of, Class::product);
  EXPECT_DOUBLE_EQ(arithmetic.seconds, 16);
  i.cost.memory_bytes = 800;
  EXPECT_DOUBLE_EQ(KernelCosts(c, softwares()[0]).of(p, {.instruction = &i}).seconds, 80);
}

// With scores in memory, and bf16 heads that are not multiples of 16 bytes: at the fp32 peak.
TEST(Attention, NeedsWhole16BytesForTensorCores) {
  Cluster c = small_cluster();
  c.device.memory_bandwidth = 1e12;
  c.device.peak[DType::bf16] = 16 * c.device.peak[DType::f32];
  const auto seconds = [&](int64_t depth, DType dtype) {
    program::Program p;
    for (const char* seq : {"seq", "key_seq", "key_seq"})
      p.buffers.push_back({.name = seq, .type = {{{"batch", 2}, {seq, 8}, {"head_dim", depth}}, dtype}});
    program::Instruction i;
    i.kernel = "attention";
    i.ins = {0, 1, 2};
    return KernelCosts(c, software_named("bloom-2022")).of(p, {.instruction = &i}).seconds;
  };
  EXPECT_NEAR(seconds(108, DType::bf16), seconds(108, DType::f32), 1e-6 * seconds(108, DType::f32));
  EXPECT_LT(seconds(112, DType::bf16), seconds(108, DType::bf16) / 15);
  EXPECT_LT(seconds(104, DType::bf16), seconds(112, DType::bf16));
}

TEST(Attention, HasTheShareOfTheSoftwaresKernels) {
  Cluster c = small_cluster();
  program::Program p;
  for (const char* seq : {"seq", "key_seq", "key_seq"})
    p.buffers.push_back({.name = seq, .type = {{{"batch", 2}, {seq, 8}, {"head_dim", 4}}, DType::f32}});
  program::Instruction i;
  i.kernel = "attention";
  i.ins = {0, 1, 2};
  i.cost.flops = 100;
  const auto seconds = [&](std::string_view software) {
    return KernelCosts(c, software_named(software)).of(p, {.instruction = &i}).seconds;
  };
  EXPECT_DOUBLE_EQ(seconds("kintsugi"), 2);  // half of 100 FLOP/s
  EXPECT_DOUBLE_EQ(seconds("pytorch-fsdp"), 2) << "the file does not know those of Triton";
  c.attention.triton_forward = 0.25;
  c.attention.flash2_forward = 0.4;
  EXPECT_DOUBLE_EQ(seconds("kintsugi"), 2);
  EXPECT_DOUBLE_EQ(seconds("pytorch-fsdp"), 4);
  EXPECT_DOUBLE_EQ(seconds("torchtitan"), 2.5);
}

TEST(Products, In8Bits) {
  Cluster c = small_cluster();
  c.device.memory_bandwidth = 1e9;
  const KernelCosts costs(c, software_named("megatron-2025-fp8"));
  const ProductSize size = {.rows = 2, .columns = 20, .depth = 1000};
  EXPECT_THROW(costs.product_fp8(size), base::UserError);
  c.device.peak_fp8 = 200;
  EXPECT_DOUBLE_EQ(costs.product_fp8(size), 400);
  c.products.share_fp8 = 0.5;
  EXPECT_DOUBLE_EQ(costs.product_fp8(size), 800);
}

GroupShape group(const Cluster& c, int ranks, int stride = 1) {
  std::vector<int> list;
  for (int i = 0; i < ranks; ++i) list.push_back(i * stride);
  return shape_of(c, list);
}

TEST(Groups, LieOnNodes) {
  const Cluster c = small_cluster();
  EXPECT_EQ(group(c, 8).nodes, 1);
  EXPECT_EQ(group(c, 16).nodes, 2);
  EXPECT_EQ(group(c, 16).per_node(), 8);
  EXPECT_EQ(group(c, 4, 8).nodes, 4);
  EXPECT_EQ(group(c, 4, 4).per_node(), 2);
}

TEST(Transfers, WithinANode) {
  Cluster c = small_cluster();
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4), Collective::all_reduce, 30).total(), 6);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 2), Collective::send, 30).total(), 6);
  c.node.start = 1;
  c.node.step = 0.5;
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4), Collective::all_reduce, 30).latency, 1 + 6 * 0.5);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4), Collective::all_gather, 30).latency, 1 + 3 * 0.5);
}

TEST(Transfers, BetweenNodes) {
  Cluster c = small_cluster();
  // One device per node: the device's share of the network. Two: twice that. Eight: the links of the node.
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 2, 8), Collective::all_gather, 10).seconds, 10);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 4), Collective::all_gather, 10).seconds, 5);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 16), Collective::all_gather, 10).seconds, 2);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 2, 8), Collective::send, 10).seconds, 10);
  // Of 4 ranks on 2 nodes, 2 of the 3 others are remote.
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 4), Collective::all_to_all, 30).seconds, 20);
  c.network.taper = 0.5;
  c.network.nodes_per_part = 4;
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 8), Collective::all_gather, 10).seconds, 10);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 8, 8), Collective::all_gather, 10).seconds, 20);
  // Many nodes: a tree has fewer steps, a ring more bandwidth.
  c = small_cluster();
  c.network.link.step = 1;
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 64, 8), Collective::all_reduce, 0.92).total(), 2 * 6 + 1);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 8), Collective::all_reduce, 920).total(), 2 * 3 + 920);
}

// Four adapters for eight devices: neighbours share one, so a ring over all, or over one device per node, leaves a node
// through the adapter that it entered by.
TEST(Transfers, OfRingsThatChangeTheAdapter) {
  Cluster c = small_cluster();
  c.network.adapters = 4;
  c.network.crossing = 0.5;
  EXPECT_FALSE(group(c, 16).changes_adapter);
  EXPECT_FALSE(group(c, 4, 8).changes_adapter);
  EXPECT_TRUE(group(c, 8, 2).changes_adapter);
  EXPECT_TRUE(group(c, 4, 4).changes_adapter);
  EXPECT_FALSE(group(c, 2, 4).changes_adapter) << "one node";
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 4), Collective::all_gather, 10).seconds, 10);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 8), Collective::all_gather, 10).seconds, 10);
  c.network.adapters = 8;
  c.network.crossing = 1;
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 4), Collective::all_gather, 10).seconds, 5);
}

TEST(Transfers, TakeTheFastestProtocolBetweenNodes) {
  Cluster c = small_cluster();
  c.node.step = 1;
  c.network.link.step = 10;
  c.network.link.ll128_step = 2;
  // Steps within a node do not use this protocol: unchanged.
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 16), Collective::all_gather, 10).latency, 10 + 14);
  // One rank per node needs no step within a node.
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 4, 8), Collective::all_gather, 9.2).total(), 3 * 2 + 10);
  c.node.ll128_step = 0.5;
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 16), Collective::all_gather, 9.2).total(), 2 + 14 * 0.5 + 2);
  // Large messages: full bandwidth saves more than the steps cost.
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 16), Collective::all_gather, 1000).total(), 24 + 200);
  // Small messages: LL.
  c.node.ll_step = c.network.link.ll_step = 0.1;
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 16), Collective::all_gather, 5).total(), 15 * 0.1 + 2);
  EXPECT_DOUBLE_EQ(transfer_time(c, group(c, 16), Collective::all_reduce, 5).total(), 2 * 15 * 0.1 + 2);
}

TEST(Transfers, OfAllRanksShareStorage) {
  Cluster c = small_cluster();
  EXPECT_THROW(copy_time(c, 4, 1), base::UserError);
  c.storage_bandwidth = 8;
  EXPECT_DOUBLE_EQ(copy_time(c, 4, 10).total(), 10);  // over the network, of 1 byte/s a device
  c.nodes = 1;
  EXPECT_DOUBLE_EQ(copy_time(c, 4, 10).total(), 5);
}

}  // namespace kintsugi::simulate::costs_test
