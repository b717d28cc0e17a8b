#include "kintsugi/samples/loader.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "kintsugi/base/error.h"
#include "kintsugi/data/test_folder.h"

namespace kintsugi::samples::loader_test {
namespace {

// Row n is filled with the number n; sample `bad` throws, `slow` takes long.
class Numbers : public SampleSource {
 public:
  uint64_t bad = UINT64_MAX;
  uint64_t slow = UINT64_MAX;
  mutable std::atomic<int> fills{0};

  Parts held = {tokens_part(3), labels_part(3)};

  const Parts& parts() const override { return held; }
  void fill(uint64_t first, const BatchView& batch) const override {
    ++fills;
    for_each_row(batch, parts(), [&](uint64_t row, const BatchView& view) {
      if (first + row == bad) throw base::UserError("data", "sample {} is bad", bad);
      if (first + row == slow) std::this_thread::sleep_for(std::chrono::seconds(1));
      std::ranges::fill(view.get<int32_t>("tokens"), static_cast<int32_t>(first + row));
      std::ranges::fill(view.get<int32_t>("labels"), 0);
      std::ranges::fill(view.get<int32_t>("starts"), 0);
    });
  }
};

}  // namespace

TEST(Loader, GivesAllInOrder) {
  Numbers numbers;
  for (const int64_t rank : {0, 1}) {
    if (rank == 1) numbers.held.push_back(starts_part(3));
    const Share share = {.global_batch = 12, .micro_batch = 2, .ranks = 2, .rank = rank};
    Loader loader(numbers, {.share = share, .first_step = 7, .end_step = 57, .depth = 3});
    for (uint64_t step = 7; step < 57; ++step) {
      for (int64_t m = 0; m < 3; ++m) {
        const Loader::Item& item = loader.next();
        ASSERT_EQ(item.step, step);
        ASSERT_EQ(item.micro_batch, m);
        const auto first = static_cast<int32_t>(step * 12) + static_cast<int32_t>((m * 2 + rank) * 2);
        const std::span<int32_t> tokens = item.batch.get<int32_t>("tokens");
        ASSERT_EQ(std::vector<int32_t>(tokens.begin(), tokens.end()),
                  (std::vector<int32_t>{first, first, first, first + 1, first + 1, first + 1}));
        EXPECT_EQ(item.batch.get<int32_t>("starts").empty(), rank == 0);
      }
    }
    EXPECT_THROW(loader.next(), base::InternalError);
  }
}

TEST(Loader, TheBatchInHandIsNotOverwritten) {
  const Numbers numbers;
  Loader loader(numbers, {.share = {.global_batch = 1, .micro_batch = 1}, .depth = 2});
  for (int i = 0; i < 200; ++i) {
    const Loader::Item& item = loader.next();
    while (numbers.fills < i + 3) std::this_thread::yield();  // it has read as far ahead as it may
    ASSERT_EQ(item.batch.get<int32_t>("tokens")[0], i);
  }
}

TEST(Loader, ErrorsComeWhereTheyBelong) {
  Numbers numbers;
  numbers.bad = 3;
  Loader loader(numbers, {.share = {.global_batch = 1, .micro_batch = 1}});
  for (int i = 0; i < 3; ++i) EXPECT_EQ(loader.next().batch.get<int32_t>("tokens")[0], i);
  EXPECT_EQ(data::error_of([&] { loader.next(); }), "[data] sample 3 is bad");
  EXPECT_EQ(data::error_of([&] { loader.next(); }), "[data] sample 3 is bad");
}

TEST(Loader, DoesNotWaitForever) {
  Numbers numbers;
  numbers.slow = 1;
  Loader loader(numbers,
                {.share = {.global_batch = 1, .micro_batch = 1}, .time_limit = std::chrono::milliseconds(300)});
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  loader.next();
  EXPECT_EQ(
      data::error_of([&] { loader.next(); }),
      "[data] reading micro-batch 0 of step 1 takes more than 0 s; does the file system of the token files work?");
}

TEST(Loader, EndsWithWorkInFlight) {
  const Numbers numbers;
  for (int i = 0; i < 50; ++i) {
    Loader loader(numbers, {.share = {.global_batch = 4, .micro_batch = 2}});
    if (i % 2 == 0) loader.next();
  }
}

}  // namespace kintsugi::samples::loader_test
