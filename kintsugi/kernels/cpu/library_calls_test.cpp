#include "kintsugi/kernels/cpu/library_calls.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

namespace kintsugi::kernels::cpu::library_calls_test {
namespace {

constexpr uint64_t kBase = 0x1234567800000000, kKinds = 20;

TEST(LibraryCalls, EveryCallIsMadeAndTheFirstOfAKindAlone) {
  constexpr int kThreads = 4, kTurns = 5;
  std::array<std::atomic<int>, kKinds> calls = {}, early = {};
  std::array<std::atomic<bool>, kKinds> known = {};
  std::vector<std::thread> team;
  for (int t = 0; t < kThreads; ++t)
    team.emplace_back([&] {
      for (int turn = 0; turn < kTurns; ++turn)
        for (uint64_t kind = 0; kind < kKinds; ++kind)
          call_library(kBase + kind, [&] {
            ++calls[kind];
            if (known[kind]) return;
            ++early[kind];
            std::this_thread::sleep_for(std::chrono::milliseconds(1));  // time for other threads to call it too
            known[kind] = true;
          });
    });
  for (std::thread& t : team) t.join();
  for (uint64_t kind = 0; kind < kKinds; ++kind) {
    EXPECT_EQ(calls[kind], kThreads * kTurns) << kind;
    EXPECT_EQ(early[kind], 1) << kind;
    EXPECT_TRUE(was_called(kBase + kind)) << kind;
  }
  EXPECT_FALSE(was_called(kBase + kKinds));
}

TEST(LibraryCalls, WhatFailsIsNotKnown) {
  const uint64_t kind = kBase + 1000;
  EXPECT_THROW(call_library(kind, [] { throw 1; }), int);
  EXPECT_FALSE(was_called(kind));
  int calls = 0;
  call_library(kind, [&] { ++calls; });
  EXPECT_EQ(calls, 1);
  EXPECT_TRUE(was_called(kind));
}

TEST(LibraryCalls, OfMoreKindsThanSlotsSomeAreForgotten) {
  for (uint64_t kind = 0; kind < 40; ++kind) remember_call(kBase + (kind << 40));  // all with one slot
  EXPECT_TRUE(was_called(kBase + (uint64_t{39} << 40)));
  int known = 0;
  for (uint64_t kind = 0; kind < 40; ++kind) known += was_called(kBase + (kind << 40));
  EXPECT_GT(known, 0);
  EXPECT_LT(known, 40);
}

}  // namespace
}  // namespace kintsugi::kernels::cpu::library_calls_test
