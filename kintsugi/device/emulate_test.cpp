#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/device/exchanged.h"
#include "kintsugi/device/gpu.h"

namespace kintsugi::device::emulate_test {
namespace {

using namespace gpu_emulated;
using emulate::Order;

// Runs a kernel immediately.
template <typename... P, typename... A>
void run_now(dim3 grid, dim3 block, size_t shared, void (*kernel)(P...), A... arguments) {
  const auto device = open_device("emulated");
  const auto stream = device->stream();
  launch(*stream, grid, block, shared, kernel, arguments...);
  stream->synchronize();
}

__global__ void reverse(const int* x, int* y, int count) {
  GPU_DYNAMIC_SHARED(int, all);
  const auto i = static_cast<int>(threadIdx.x);
  all[i] = x[blockIdx.x * blockDim.x + threadIdx.x];
  __syncthreads();
  y[blockIdx.x * blockDim.x + threadIdx.x] = all[count - 1 - i];
}

TEST(Emulate, ThreadsOfABlockMeetAtABarrier) {
  for (const int threads : {1, 31, 64, 1000}) {
    std::vector<int> x(static_cast<size_t>(5 * threads)), y(x.size());
    std::iota(x.begin(), x.end(), 0);
    run_now(5, static_cast<unsigned>(threads), static_cast<size_t>(threads) * sizeof(int), reverse, x.data(), y.data(),
            threads);
    for (int b = 0; b < 5; ++b)
      for (int i = 0; i < threads; ++i)
        ASSERT_EQ(y[static_cast<size_t>(b * threads + i)], b * threads + threads - 1 - i);
  }
}

__global__ void sums(const float* x, float* lanes, float* all) {
  __shared__ float scratch[32];
  lanes[threadIdx.x] = lanes_sum(x[threadIdx.x]);
  all[threadIdx.x] = block_sum(x[threadIdx.x], scratch);
}

TEST(Emulate, LanesAddInOneTreeWhateverTheWarp) {
  std::vector<float> x(256), lanes(256), all(256), other(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = 1.0f / static_cast<float>(i + 1);
  emulate::set_warp(64);
  run_now(1, 256, 0, sums, x.data(), other.data(), all.data());
  emulate::set_warp(32);
  run_now(1, 256, 0, sums, x.data(), lanes.data(), all.data());
  EXPECT_EQ(lanes, other);
  EXPECT_NEAR(all[77], std::accumulate(x.begin(), x.end(), 0.0), 1e-5);
  EXPECT_EQ(all[0], all[255]);
  for (size_t i = 0; i < 32; ++i) {  // the tree that exchanges make
    float tree[32];
    std::copy_n(x.begin(), 32, tree);
    for (size_t half = 16; half > 0; half /= 2)
      for (size_t j = 0; j < half; ++j) tree[j] += tree[j + half];
    EXPECT_EQ(lanes[i], tree[0]);
  }
  EXPECT_NEAR(lanes[40], std::accumulate(x.begin() + 32, x.begin() + 64, 0.0), 1e-6);
}

__global__ void equals(const int* x, uint32_t* same) {
  same[threadIdx.x] = lanes_equal(x[threadIdx.x]);
}

TEST(Emulate, LanesThatAreEqual) {
  std::vector<int> x(64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int>(i * i % 7);
  std::vector<uint32_t> same(64);
  for (const int warp : {32, 64}) {
    emulate::set_warp(warp);
    run_now(1, 64, 0, equals, x.data(), same.data());
    for (size_t i = 0; i < 64; ++i)
      for (size_t j = 0; j < 32; ++j) EXPECT_EQ(same[i] >> j & 1, x[i / 32 * 32 + j] == x[i]);
  }
  emulate::set_warp(32);
}

__global__ void nothing() {}

// What a device would reject.
TEST(Emulate, LaunchesThatAreTooLarge) {
  const size_t kilobytes = 1024;
  for (const int warp : {32, 64}) {
    emulate::set_warp(warp);
    const size_t most = (warp == 32 ? 227 : 64) * kilobytes;
    EXPECT_EQ(emulate::most_shared(), most);
    run_now(1, 32, most, nothing);
    EXPECT_THROW(run_now(1, 32, most + 1, nothing), base::InternalError);
  }
  emulate::set_warp(32);
  emulate::set_most_shared(99 * kilobytes);
  EXPECT_THROW(run_now(1, 32, 100 * kilobytes, nothing), base::InternalError);
  emulate::set_most_shared(0);
  run_now({1, 65535, 1}, 1, 0, nothing);
  EXPECT_THROW(run_now({1, 65536, 1}, 1, 0, nothing), base::InternalError);
  EXPECT_THROW(run_now(1, 1025, 0, nothing), base::InternalError);
}

// Each thread reads what its neighbour wrote; without a barrier, one of the two orders reveals it.
__global__ void without_a_barrier(int* seen, int step) {
  GPU_DYNAMIC_SHARED(int, all);
  const int i = static_cast<int>(threadIdx.x), count = static_cast<int>(blockDim.x);
  all[i] = i;
  seen[i] = all[(i + step + count) % count];
}
__global__ void copied_and_not_waited_for(const int* x, int* seen) {
  GPU_DYNAMIC_SHARED(int, all);
  copy_async_16(all + 4 * threadIdx.x, x + 4 * threadIdx.x);
  copy_async_commit();
  seen[threadIdx.x] = all[4 * threadIdx.x];
  copy_async_wait<0>();
  seen[blockDim.x + threadIdx.x] = all[4 * threadIdx.x];
}

TEST(Emulate, TwoOrdersShowWhatIsNotWaitedFor) {
  const auto seen_in = [](Order order, int step) {
    std::vector<int> seen(64);
    emulate::set_order(order);
    run_now(1, 64, 64 * sizeof(int), without_a_barrier, seen.data(), step);
    return seen[5] == 5 + step;
  };
  EXPECT_FALSE(seen_in(Order::first_to_last, 40));
  EXPECT_TRUE(seen_in(Order::last_to_first, 40));
  EXPECT_FALSE(seen_in(Order::last_to_first, -1));
  EXPECT_TRUE(seen_in(Order::first_to_last, -1));

  std::vector<int> x(256), seen(128);
  std::iota(x.begin(), x.end(), 0);
  emulate::set_order(Order::last_to_first);
  run_now(1, 64, 1024, copied_and_not_waited_for, x.data(), seen.data());
  EXPECT_NE(seen[3], 12);
  EXPECT_EQ(seen[64 + 3], 12);
  emulate::set_order(Order::first_to_last);
}

// Each thread passes its element to the thread of the same index in the next block of the cluster.
struct Round {
  bool begins = true, meets = true, all = true;
  unsigned leaves = ~0u;  // a block
};
__global__ void around(const int* x, int* y, unsigned cluster, Round round) {
  GPU_DYNAMIC_SHARED(int, own);
  wait_for_kernels_before();
  if (blockIdx.x == round.leaves) return;
  const unsigned rank = blockIdx.x % cluster, at = blockIdx.x * blockDim.x + threadIdx.x;
  if (round.begins) cluster_begins();
  of_block_in_cluster(own, (rank + 1) % cluster)[threadIdx.x] = x[at];
  if (round.meets && (round.all || threadIdx.x < 32)) cluster_barrier();
  y[at] = own[threadIdx.x];
}
std::vector<int> seen_around(unsigned blocks, unsigned cluster, Round round = {}, Order order = Order::first_to_last) {
  const unsigned threads = 64;
  std::vector<int> x(blocks * threads), y(x.size());
  std::iota(x.begin(), x.end(), 0);
  const auto device = open_device("emulated");
  const auto stream = device->stream();
  emulate::set_order(order);
  launch_overlapping(*stream, {dim3(blocks), cluster}, threads, threads * sizeof(int), {}, around, x.data(), y.data(),
                     cluster, round);
  stream->synchronize();
  emulate::set_order(Order::first_to_last);
  return y;
}

TEST(Emulate, BlocksOfAClusterReachEachOther) {
  for (const unsigned cluster : {1u, 2u, 8u})
    for (const Order order : {Order::first_to_last, Order::last_to_first}) {
      const std::vector<int> y = seen_around(48, cluster, {}, order);
      for (unsigned b = 0; b < 48; ++b)
        for (unsigned i = 0; i < 64; ++i) {
          const unsigned from = b / cluster * cluster + (b + cluster - 1) % cluster;
          ASSERT_EQ(y[b * 64 + i], static_cast<int>(from * 64 + i));
        }
    }
  EXPECT_THROW(seen_around(3, 2), base::InternalError);
}

TEST(EmulateDeathTest, BlocksOfAClusterThatDoNotMeetAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(seen_around(2, 2, {.begins = false}),
               "block \\(0 0 0\\): thread \\(. 0 0\\) wants the memory of block \\(1 0 0\\) of its cluster, which has "
               "not begun");
  EXPECT_DEATH(
      seen_around(2, 2, {.meets = false}),
      "block \\(1 0 0\\): thread \\(. 0 0\\) wants the memory of block \\(0 0 0\\) of its cluster, which has ended");
  EXPECT_DEATH(
      seen_around(4, 4, {.leaves = 2}),
      "block \\(0 0 0\\): thread \\(0 0 0\\) waits in a barrier for block \\(2 0 0\\) of its cluster, which has ended");
  EXPECT_DEATH(seen_around(2, 2, {.all = false}),
               "thread \\(0 0 0\\) waits in a barrier of the cluster, which thread \\(32 0 0\\) never reached");
}

// By the matrix unit, or by shuffles.
template <bool kUnit>
__global__ void product(const bf16* a, const bf16* b, float* d) {
  __shared__ bf16 rows[16 * 16];
  const auto lane = static_cast<int>(threadIdx.x);
  for (int i = lane; i < 256; i += 32) rows[i] = a[i];
  __syncthreads();
  uint32_t left[4];
  // Matrices: rows 0-7, rows 8-15, both again for the second half of the columns.
  const bf16* const row = rows + (lane % 16) * 16 + lane / 16 * 8;
  if constexpr (kUnit)
    load_matrices(left, row);
  else
    load_by_exchanges<false>(left, row, lane);
  const int g = lane / 4, t = lane % 4;
  uint32_t right[2];
  for (int k = 0; k < 2; ++k) {
    const auto at = [&](int row) { return static_cast<uint32_t>(b[row * 8 + g].bits); };
    right[k] = at(8 * k + 2 * t) | at(8 * k + 2 * t + 1) << 16;
  }
  float sum[4] = {};
  if constexpr (kUnit)
    mma_16x8x16<bf16>(sum, left, right);
  else
    mma_by_exchanges<bf16>(sum, left, right, lane);
  for (int i = 0; i < 4; ++i) d[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];
}

__global__ void transposes(const bf16* a, uint32_t* by_unit, uint32_t* by_exchanges) {
  const auto lane = static_cast<int>(threadIdx.x);
  uint32_t unit[4], exchanged[4];
  load_matrices<true>(unit, a + lane * 8);
  load_by_exchanges<true>(exchanged, a + lane * 8, lane);
  for (int m = 0; m < 4; ++m) by_unit[lane * 4 + m] = unit[m], by_exchanges[lane * 4 + m] = exchanged[m];
}

TEST(Emulate, MatrixUnit) {
  std::vector<bf16> a(16 * 16), b(16 * 8);
  std::vector<float> d(16 * 8);
  for (size_t i = 0; i < a.size(); ++i) a[i] = narrow<bf16>(static_cast<float>(i % 23) - 11);
  for (size_t i = 0; i < b.size(); ++i) b[i] = narrow<bf16>(static_cast<float>(i % 19) - 9);
  for (const auto multiply : {product<true>, product<false>}) {
    run_now(1, 32, 0, multiply, a.data(), b.data(), d.data());
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 8; ++j) {
        float want = 0;
        for (size_t k = 0; k < 16; ++k) want += widen(a[i * 16 + k]) * widen(b[k * 8 + j]);
        EXPECT_EQ(d[i * 8 + j], want);
      }
  }
  std::vector<uint32_t> by_unit(32 * 4), by_exchanges(32 * 4);
  run_now(1, 32, 0, transposes, a.data(), by_unit.data(), by_exchanges.data());
  EXPECT_EQ(by_unit, by_exchanges);
}

TEST(Emulate, RoundingIsToNearestEven) {
  EXPECT_EQ(narrow<bf16>(1.0f + 1.0f / 256).bits, 0x3F80);
  EXPECT_EQ(narrow<bf16>(1.0f + 3.0f / 256).bits, 0x3F82);
  EXPECT_EQ(narrow<f16>(65520.0f).bits, 0x7C00);
  EXPECT_TRUE(std::isnan(widen(narrow<bf16>(NAN))));
  EXPECT_EQ(widen(narrow<f16>(0.1f)), 0.0999755859375f);
}

__global__ void half_at_a_barrier() {
  if (threadIdx.x < 32) __syncthreads();
}
__global__ void a_lane_away(float* x) {
  if (threadIdx.x != 5) x[threadIdx.x] = shuffle_xor(x[threadIdx.x], 1);
}
__global__ void a_copy_at_the_end(const int* x) {
  GPU_DYNAMIC_SHARED(int, all);
  copy_async_16(all, x);
  copy_async_commit();
}
__global__ void different_meetings(float* x) {
  if (threadIdx.x < 16) {
    warp_barrier();
  } else {
    x[threadIdx.x] = shuffle(x[threadIdx.x], 0);
  }
}

TEST(EmulateDeathTest, ThreadsThatDoNotMeetAreNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  std::vector<float> x(64);
  EXPECT_DEATH(
      run_now(2, 64, 0, half_at_a_barrier),
      "block \\([01] 0 0\\): thread \\(0 0 0\\) waits in __syncthreads, which thread \\(32 0 0\\) never reached");
  EXPECT_DEATH(run_now(1, 64, 0, a_lane_away, x.data()),
               "thread \\(0 0 0\\) waits in a shuffle, which thread \\(5 0 0\\) never reached before its end");
  EXPECT_DEATH(run_now(1, 32, 0, different_meetings, x.data()),
               "waits in a barrier of the warp, which thread \\(16 0 0\\) does not reach: it waits in a shuffle");
}

TEST(EmulateDeathTest, ACopyThatNobodyWaitsForIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::vector<int> x(4);
  emulate::set_order(Order::last_to_first);
  EXPECT_DEATH(run_now(1, 1, 16, a_copy_at_the_end, x.data()),
               "block \\(0 0 0\\): thread \\(0 0 0\\) ended without a wait for 1 copies");
  emulate::set_order(Order::first_to_last);
}

__global__ void a_copy_from(const int* x) {
  GPU_DYNAMIC_SHARED(int, all);
  copy_async_16(all, x);
  copy_async_commit();
  copy_async_wait<0>();
}

TEST(EmulateDeathTest, ACopyFromBetweenIsNamed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  alignas(16) const int x[8] = {};
  run_now(1, 1, 16, a_copy_from, x + 4);
  EXPECT_DEATH(run_now(1, 1, 16, a_copy_from, x + 1),
               "thread \\(0 0 0\\) copies 16 bytes from 0x[0-9a-f]+4 to 0x[0-9a-f]+0, of which one does not begin");
}

__global__ void a_good_neighbour(int* x, bool waits, bool early) {
  if (early) let_next_begin();
  if (waits || threadIdx.x == 0) wait_for_kernels_before();
  if (waits) let_next_begin();
  x[threadIdx.x] = 1;
}

TEST(EmulateDeathTest, AKernelThatBeginsEarlyWaits) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const auto run = [](bool waits, bool early) {
    const auto device = open_device("emulated");
    const auto stream = device->stream();
    std::vector<int> x(64);
    launch_overlapping(*stream, dim3(1), 64, 0, {}, a_good_neighbour, x.data(), waits, early);
    stream->synchronize();
    EXPECT_EQ(x[63], 1);
  };
  run(true, false);
  EXPECT_DEATH(run(false, false), "thread \\(1 0 0\\) ended and has not waited for the kernels before");
  EXPECT_DEATH(run(true, true),
               "thread \\(0 0 0\\) lets the next kernel begin and has not waited for the kernels before");
}

// Memory that is known to be unwritten when a kernel starts early: none, unless a kernel that declares its outputs
// precedes it.
TEST(EmulatedDevice, WhatAKernelMayReadEarly) {
  const auto device = open_device("emulated");
  const auto memory = device->allocate(1024);
  const auto stream = device->stream(), other = device->stream();
  const auto event = device->event();
  auto* const x = reinterpret_cast<int*>(memory->data());
  const auto bytes = [&](int64_t begin, int64_t count) { return bytes_at(x + begin, count * 4); };
  const auto enqueue = [&] {
    launch_overlapping(*stream, dim3(1), 64, 0, {bytes(0, 64)}, a_good_neighbour, x, true, false);
  };
  EXPECT_FALSE(unwritten(*stream, {bytes(64, 64)}));
  enqueue();
  EXPECT_TRUE(unwritten(*stream, {bytes(64, 64), bytes_at(nullptr, 64)}));
  EXPECT_FALSE(unwritten(*stream, {bytes(64, 64), bytes(63, 1)}));
  const std::function<void()> others[] = {
      [&] { stream->copy(x, x + 128, 4); },
      [&] { stream->zero(x, 4); },
      [&] { stream->native(); },
      [&] { stream->record(*event); },
      [&] {
        other->zero(x + 192, 4);
        other->record(*event);
        stream->wait(*event);
      },
      [&] { launch(*stream, 1, 64, 0, a_good_neighbour, x, true, false); },
      [&] { stream->begin_capture(); },
      [&] { stream->launch(*stream->end_capture()); },
  };
  for (const auto& act : others) {
    enqueue();
    EXPECT_TRUE(unwritten(*stream, {bytes(64, 64)}));
    act();
    EXPECT_FALSE(unwritten(*stream, {bytes(64, 64)}));
  }
  stream->synchronize();
}

TEST(EmulatedDevice, NothingIsDoneBeforeSomebodyWaits) {
  const auto device = open_device("emulated");
  const auto memory = device->allocate(8);
  const auto a = device->stream(), b = device->stream();
  const auto event = device->event();
  int64_t one = 1, two = 2, seen = 0;
  a->copy(memory->data(), &one, 8);
  a->record(*event);
  b->wait(*event);
  b->copy(&seen, memory->data(), 8);
  EXPECT_FALSE(event->done());
  one = 5;  // too early: it was not copied yet
  b->synchronize();
  EXPECT_EQ(seen, 5);
  EXPECT_TRUE(event->done());

  a->begin_capture();
  a->copy(memory->data(), &two, 8);
  const auto graph = a->end_capture();
  a->synchronize();
  EXPECT_EQ(*reinterpret_cast<int64_t*>(memory->data()), 5);
  for (const int64_t value : {7, 8}) {
    two = value;
    a->launch(*graph);
    a->synchronize();
    EXPECT_EQ(*reinterpret_cast<int64_t*>(memory->data()), value);
  }
}

}  // namespace
}  // namespace kintsugi::device::emulate_test
