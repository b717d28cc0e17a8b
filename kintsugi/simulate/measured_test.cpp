// Measured tables: lookups, and their file.
#include "kintsugi/simulate/measured.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/kernel_costs.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/simulate/small_cluster_test.h"
#include "kintsugi/simulate/transfer_costs.h"
#include "kintsugi/simulate/write_cluster.h"

namespace kintsugi::simulate::measured_test {

using program::Collective;
using tensor::DType;

KernelKey gelu(double bytes, double flops = 0) {
  return {.kernel = "gelu", .type = DType::f32, .flops = flops, .bytes = bytes};
}

KernelKey contract(double rows, double columns, double depth, const std::string& form = "nn") {
  const ProductSize size = {.rows = rows, .columns = columns, .depth = depth};
  return {.kernel = "contract", .type = DType::f32, .form = form, .size = size, .flops = size.flops(), .bytes = 1};
}

TEST(MeasuredKernels, AreFoundOrLieBetweenThoseThatWere) {
  Measured m;
  EXPECT_FALSE(m.kernel_seconds(gelu(100)));
  m.add(MeasuredKernel{gelu(100), 1});
  m.add(MeasuredKernel{gelu(10000), 10});
  EXPECT_DOUBLE_EQ(*m.kernel_seconds(gelu(100)), 1);
  EXPECT_NEAR(*m.kernel_seconds(gelu(1000)), std::sqrt(10.0), 1e-9);  // in the middle of both, in logarithms
  EXPECT_DOUBLE_EQ(*m.kernel_seconds(gelu(1)), 1) << "no less than the least";
  EXPECT_DOUBLE_EQ(*m.kernel_seconds(gelu(20000)), 20) << "at the rate of the largest";
  EXPECT_FALSE(m.kernel_seconds({.kernel = "gelu", .type = DType::bf16, .bytes = 100}));
  m.add(MeasuredKernel{gelu(100), 2});
  EXPECT_EQ(m.kernels.size(), 2u) << "in place of the one before";
  EXPECT_DOUBLE_EQ(*m.kernel_seconds(gelu(100)), 2);
}

// Compute-bound operations scale with FLOPs.
TEST(MeasuredKernels, OfMuchArithmeticGoByIt) {
  Measured m;
  m.add(MeasuredKernel{gelu(100, 10000), 1});
  m.add(MeasuredKernel{gelu(100, 40000), 4});
  EXPECT_NEAR(*m.kernel_seconds(gelu(100, 20000)), 2, 1e-9);
}

TEST(MeasuredKernels, ProductsTakeTheRateOfTheNearest) {
  Measured m;
  m.add(MeasuredKernel{contract(64, 64, 64), contract(64, 64, 64).flops / 1e3});
  m.add(MeasuredKernel{contract(4096, 4096, 4096), contract(4096, 4096, 4096).flops / 4e3});
  EXPECT_DOUBLE_EQ(*m.kernel_seconds(contract(64, 64, 64)), contract(64, 64, 64).flops / 1e3);
  const auto rate = [&](const KernelKey& key) { return key.flops / *m.kernel_seconds(key); };
  EXPECT_NEAR(rate(contract(512, 512, 512)), 2e3, 1) << "as far from both";
  EXPECT_NEAR(rate(contract(64, 64, 70)), 1e3, 10);
  EXPECT_NEAR(rate(contract(4096, 4096, 4000)), 4e3, 10);
}

TEST(MeasuredKernels, ReplaceEstimates) {
  program::Program p;
  p.buffers = {{.name = "x", .type = {tensor::Shape({{"seq", 100}}), DType::f32}}};
  program::Instruction i = {.kernel = "gelu", .ins = {0}, .outs = {0}};
  i.cost.memory_bytes = 800;
  Cluster c = small_cluster();
  EXPECT_DOUBLE_EQ(KernelCosts(c, softwares()[0]).of(p, {.instruction = &i}).seconds, 80);
  c.measured.add(MeasuredKernel{gelu(800), 7});
  EXPECT_DOUBLE_EQ(KernelCosts(c, softwares()[0]).of(p, {.instruction = &i}).seconds, 7);
}

TEST(MeasuredTransfers, ReplaceEstimatesWithinANode) {
  Cluster c = small_cluster();
  const GroupShape two = {.ranks = 2, .nodes = 1}, four = {.ranks = 4, .nodes = 1};
  c.measured.add(MeasuredTransfer{Collective::all_reduce, 2, 10, 1});
  c.measured.add(MeasuredTransfer{Collective::all_reduce, 2, 1000, 50});
  c.measured.add(MeasuredTransfer{Collective::send, 2, 10, 3});
  const TransferTime large = transfer_time(c, two, Collective::all_reduce, 1000);
  EXPECT_DOUBLE_EQ(large.total(), 50);
  EXPECT_DOUBLE_EQ(large.latency, 1) << "what the least bytes take is not shared with other transfers";
  EXPECT_DOUBLE_EQ(transfer_time(c, two, Collective::receive, 10).total(), 3);
  EXPECT_DOUBLE_EQ(transfer_time(c, four, Collective::all_reduce, 30).total(), 6) << "of 4 none was measured";
  EXPECT_DOUBLE_EQ(transfer_time(c, two, Collective::all_gather, 30).total(), 6);
}

TEST(MeasuredTables, GoToAFileAndBack) {
  Cluster c = small_cluster();
  c.name = "here";
  c.device = {.name = "a core",
              .threads = 2,
              .units = 2,
              .memory = 8e9,
              .memory_bandwidth = 14e9,
              .kernel_start = 1e-6,
              .peak = {{DType::f32, 1e11}, {DType::bf16, 4e11}}};
  c.products.start = 2e-6;
  c.nodes = 1;
  c.network = {};
  c.node = {.bandwidth = 7e9, .start = 1e-6, .step = 1e-7, .overlap = 0};
  c.measured.add(MeasuredKernel{contract(4096, 768, 3072, "nt"), 0.1812});
  c.measured.add(MeasuredKernel{gelu(25165824, 1.2e9), 3.1e-3});
  c.measured.add(MeasuredTransfer{Collective::all_gather, 2, 1048576, 812e-6});
  const std::string text = to_toml(c);
  const Cluster read = parse_cluster(text, "c.toml");
  EXPECT_EQ(to_toml(read), text);
  EXPECT_EQ(read.device.threads, 2);
  EXPECT_EQ(read.node.overlap, 0);
  EXPECT_EQ(read.device.peak, c.device.peak);
  EXPECT_EQ(read.products.tiles, c.products.tiles);
  EXPECT_DOUBLE_EQ(*read.measured.kernel_seconds(contract(4096, 768, 3072, "nt")), 0.1812);
  EXPECT_DOUBLE_EQ(*read.measured.kernel_seconds(gelu(25165824, 1.2e9)), 3.1e-3);
  EXPECT_DOUBLE_EQ(*read.measured.transfer_seconds(Collective::all_gather, 2, 1048576), 812e-6);

  const auto error_of = [&](const std::string& from, const std::string& to) {
    std::string changed = text;
    changed.replace(changed.find(from), from.size(), to);
    try {
      parse_cluster(changed, "c.toml");
    } catch (const base::UserError& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const std::pair<std::pair<std::string, std::string>, std::string> cases[] = {
      {{"time = \"181.2 ms\"", "time = 0.18"}, "time of a row is 0.18; it is a text"},
      {{"time = \"181.2 ms\"", "time = \"181 GB\""}, "it is a time as \"12.3 us\""},
      {{"4096x768x3072", "4096x768"}, "size of a row is \"4096x768\"; it is as \"4096x768x3072\""},
      {{"\"all_gather\"", "\"all_scatter\""}, "it is one of all_reduce, all_gather"},
      {{"ranks = 2", "rank = 2"}, "unknown part \"rank\" of a row; there are collective, ranks, bytes, time"},
      {{"type = \"fp32\"", "type = \"fp31\""}, "type of a row is \"fp31\""},
      {{"kernels = [", "kernel = ["}, "[measured] has the lists kernels and transfers"},
      {{"overlap = 0", "overlap = 2"}, "node.overlap is 2, out of range; it must be a whole number from 0 to 1"},
  };
  for (const auto& [change, expected] : cases) {
    const std::string error = error_of(change.first, change.second);
    EXPECT_NE(error.find(expected), error.npos) << error << "\n" << expected;
    EXPECT_NE(error.find("c.toml:"), error.npos) << error;
    EXPECT_EQ(error.find('\n'), error.npos) << error;
  }
}

// If devices move the bytes themselves, nothing hides them.
TEST(Overlap, IsLeftOutWhereDevicesMoveTheBytes) {
  program::Program p;
  p.mesh = mesh::Mesh({{.name = "data", .size = 2}});
  p.buffers = {{.name = "x", .type = {}}};
  program::Instruction kernel, start;
  kernel.kernel = "add";
  kernel.cost.memory_bytes = 40;  // 4 seconds
  start.kind = program::Kind::collective;
  start.ins = start.outs = {0};
  start.group = {0};
  start.event = 1;
  start.cost.wire_bytes = 15;  // 3 seconds
  program::Body body;
  body.instructions = {start, kernel, program::wait_for(start)};
  p.bodies = {body};
  p.lists = {{.step = program::Step::train, .calls = {{.body = 0, .micro_batch = 0}}}};
  Cluster c = small_cluster();
  EXPECT_DOUBLE_EQ(simulate({p}, c, softwares()[0]).seconds, 4);
  c.node.overlap = 0;
  EXPECT_DOUBLE_EQ(simulate({p}, c, softwares()[0]).seconds, 7);
}

}  // namespace kintsugi::simulate::measured_test
