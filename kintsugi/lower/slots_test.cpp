#include "kintsugi/lower/slots.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/memory.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/lower/schedule.h"
#include "kintsugi/program/verify.h"

namespace kintsugi::lower {
namespace {

using program::Program;

Shape bytes(int64_t n) {
  return {{"n", n / 4}};
}

std::string error_of(const Program& p) {
  try {
    program::verify(p);
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "no error";
}

// Forward makes values that backward takes in the other order, each with room of its own on the way.
Program stack(const std::vector<int64_t>& kept, const std::vector<int64_t>& rooms, std::string_view schedule,
              int64_t micro_batches) {
  Maker m;
  const BufferId w = m.state("w", bytes(64)), g = m.state("g", bytes(64), program::StateKind::gradient);
  std::vector<BufferId> values;
  m.body("forward");
  for (size_t i = 0; i < kept.size(); ++i) {
    const BufferId room = m.arena("room", bytes(rooms[i])), value = m.arena("kept" + std::to_string(i), bytes(kept[i]));
    m.call("contract", {i == 0 ? w : values.back()}, {room});
    m.call("contract", {room}, {value});
    values.push_back(value);
  }
  m.body("backward");
  BufferId d = w;
  for (size_t i = kept.size(); i-- > 0;) {
    const BufferId room = m.arena("room", bytes(rooms[i])), next = m.arena("d", bytes(kept[i]));
    m.call("contract", {d, values[i]}, {room});
    m.call("contract", {room}, {next});
    d = next;
  }
  m.call("accumulate", {d}, {g}, 0, 1);
  m.body("update");
  m.call("accumulate", {g}, {w});
  lower::schedule(m.p, plan::make_schedule(schedule, 1, 1, micro_batches));
  plan_memory(m.p, ops::operations());
  return m.p;
}

}  // namespace

TEST(Slots, AMicroBatchAtATimeNeedsNone) {
  const Program p = stack({4096, 4096}, {1024, 1024}, "1f1b", 4);
  for (const program::Buffer& b : p.buffers) EXPECT_EQ(b.segment, -1);
  EXPECT_EQ(p.lists[0].slots.size(), 1u);
}

// GPipe has all micro-batches under way: as often what one keeps, and what one call needs beside that.
TEST(Slots, AsManyAsAreUnderWay) {
  for (int64_t m : {2, 3, 8}) {
    const Program p = stack({4096, 8192, 4096}, {1024, 1024, 1024}, "gpipe", m);
    EXPECT_EQ(error_of(p), "no error");
    EXPECT_GE(p.lists[0].slots.size(), static_cast<size_t>(m));
    EXPECT_EQ(p.lists[0].lower_bound_bytes, m * 16384 + 1024) << m;
    EXPECT_GE(p.lists[0].arena_bytes, p.lists[0].lower_bound_bytes);
    EXPECT_LE(p.lists[0].arena_bytes, m * 16384 + 1024 + 8192) << m;
  }
}

// Whatever is kept and needed, nobody writes where another's values are.
TEST(Slots, RandomStacksAreWhole) {
  std::mt19937_64 random(5);
  const auto size = [&] { return 64 * static_cast<int64_t>(1 + random() % 64); };
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> kept, rooms;
    for (uint64_t n = 1 + random() % 9; n > 0; --n) {
      kept.push_back(size());
      rooms.push_back(size());
    }
    const Program p = stack(kept, rooms, i % 2 ? "gpipe" : "zero_bubble", 2 + static_cast<int64_t>(random() % 5));
    ASSERT_EQ(error_of(p), "no error") << i;
    ASSERT_GE(p.lists[0].arena_bytes, p.lists[0].lower_bound_bytes) << i;
  }
}

TEST(Slots, ASlotOfAnotherIsRefused) {
  Program p = stack({4096, 8192, 4096}, {1024, 1024, 1024}, "gpipe", 3);
  // The second micro-batch's forward writes where the first one's values wait.
  std::vector<program::Call>& calls = p.lists[0].calls;
  ASSERT_EQ(calls[1].micro_batch, 1);
  ASSERT_NE(calls[0].slot, calls[1].slot);
  calls[1].slot = calls[0].slot;
  EXPECT_EQ(error_of(p).substr(0, 65), "[verify] internal error: train: instruction 0 of backward.first (");
}

}  // namespace kintsugi::lower
