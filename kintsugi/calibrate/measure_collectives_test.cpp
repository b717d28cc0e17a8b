#include "kintsugi/calibrate/measure_collectives.h"

#include <gtest/gtest.h>

#include <map>

#include "kintsugi/calibrate/describe_machine.h"
#include "kintsugi/comm/run_ranks.h"

namespace kintsugi::calibrate::measure_collectives_test {

TEST(SentBytes, AreThoseOfARank) {
  EXPECT_EQ(sent_bytes(Operation::all_reduce, 4, 8), 12);
  EXPECT_EQ(sent_bytes(Operation::all_gather, 4, 8), 6);
  EXPECT_EQ(sent_bytes(Operation::all_to_all, 4, 8), 6);
  EXPECT_EQ(sent_bytes(Operation::send, 4, 8), 8);
  EXPECT_EQ(sent_bytes(Operation::barrier, 4, 8), 0);
}

TEST(MovedBytes, AreReadAndWrittenOnce) {
  EXPECT_EQ(moved_bytes(Operation::all_reduce, 4, 8), 64);
  EXPECT_EQ(moved_bytes(Operation::reduce, 4, 8), 40);
  EXPECT_EQ(moved_bytes(Operation::all_gather, 4, 8), 40);
  EXPECT_EQ(moved_bytes(Operation::send, 4, 8), 16);
}

TEST(MeasureCollectives, TimesAllOperationsOnAllRanks) {
  for (const int ranks : {2, 3}) {
    const auto worlds = comm::thread_worlds(ranks);
    std::vector<std::vector<CollectiveTime>> all(static_cast<size_t>(ranks));
    comm::run_ranks(worlds, [&](comm::World& world) {
      all[static_cast<size_t>(world.rank())] = measure_collectives(world, {.sizes = {256, 4096}, .seconds = 1e-4});
    });
    std::map<Operation, int> times;
    for (const CollectiveTime& t : all[0]) {
      ++times[t.operation];
      EXPECT_GT(t.seconds, 0);
      EXPECT_EQ(t.bytes % (4 * ranks), 0);
    }
    for (const Operation o : operations()) EXPECT_EQ(times[o], o == Operation::barrier ? 1 : 2) << name_of(o);
    for (size_t n = 0; n < all[0].size(); ++n) EXPECT_EQ(all[0][n].seconds, all[1][n].seconds) << "the slowest's";
    simulate::Cluster c = describe_machine({.ranks = ranks, .threads = 1}, {{ranks, 1e10, 1e10, 1e10}});
    add_transfers(c, all[0]);
    EXPECT_EQ(c.measured.transfers.size(), 12u) << "six kinds that programs have, two sizes";
  }
}

TEST(DescribeMachine, SharesTheMachineAmongItsRanks) {
  const std::vector<CoreRates> cores = {{1, 10e9, 20e9, 5e9}, {2, 20e9, 40e9, 8e9}};
  const simulate::Cluster two = describe_machine({.ranks = 2, .threads = 1}, cores);
  EXPECT_EQ(two.devices(), 2);
  EXPECT_EQ(two.device.peak.at(tensor::DType::bf16), 20e9);
  EXPECT_EQ(two.device.memory_bandwidth, 4e9);
  // Four ranks on two cores have half a core each.
  EXPECT_EQ(describe_machine({.ranks = 4, .threads = 1}, cores).device.peak.at(tensor::DType::f32), 5e9);
  EXPECT_EQ(describe_machine({.ranks = 1, .threads = 2}, cores).device.peak.at(tensor::DType::f32), 20e9);
}

// A matmul faster than the peak raises it: the search's bounds use the peak.
TEST(DescribeMachine, NoProductIsFasterThanItsPeak) {
  simulate::Cluster c = describe_machine({.ranks = 1, .threads = 1}, {{1, 10e9, 10e9, 10e9}});
  const simulate::ProductSize size = {.rows = 100, .columns = 100, .depth = 1000};
  const simulate::KernelKey key = {.kernel = "contract", .form = "nn", .size = size, .flops = size.flops(), .bytes = 9};
  add_kernels(c, {{key, size.flops() / 12e9}});
  EXPECT_DOUBLE_EQ(c.device.peak.at(tensor::DType::f32) * c.products.share, 12e9);
}

}  // namespace kintsugi::calibrate::measure_collectives_test
