#include "kintsugi/plan/schedule_timeline.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "kintsugi/base/error.h"

namespace kintsugi::plan::schedule_timeline_test {
namespace {

constexpr int kStages[] = {1, 2, 4, 8};
constexpr int64_t kMicroBatches[] = {1, 4, 8, 32};

// All stages idle equally if all chunks cost the same.
void expect_bubble(const Schedule& schedule, const Costs& costs, double expected) {
  SCOPED_TRACE(fmt::format("{} p{} v{} m{}", schedule.name, schedule.stages, schedule.chunks, schedule.micro_batches));
  const Timeline time = timeline(schedule, costs);
  for (int stage = 0; stage < schedule.stages; ++stage) EXPECT_NEAR(bubble(time, stage), expected, 1e-12);
}

}  // namespace

TEST(ScheduleTimeline, TasksByHand) {
  const Timeline time = timeline(make_schedule("1f1b", 2, 1, 2));
  EXPECT_EQ(time.spans[0], (std::vector<Span>{{0, 1}, {1, 2}, {4, 6}, {7, 9}}));
  EXPECT_EQ(time.spans[1], (std::vector<Span>{{1, 2}, {2, 4}, {4, 5}, {5, 7}}));
  EXPECT_EQ(time.length, 9);
  EXPECT_EQ(time.busy, (std::vector<double>{6, 6}));
  EXPECT_EQ(bubble(time, 0), 0.5);

  const Timeline split = timeline(make_schedule("zero_bubble", 2, 1, 1), {.forward = 2, .backward = 3, .weight = 5});
  EXPECT_EQ(split.spans[0], (std::vector<Span>{{0, 2}, {7, 10}, {10, 15}}));
  EXPECT_EQ(split.spans[1], (std::vector<Span>{{2, 4}, {4, 7}, {7, 12}}));
}

TEST(ScheduleTimeline, ChunksThatCostDifferently) {
  const Timeline time = timeline(make_schedule("gpipe", 2, 1, 2), {{1, 1, 1}, {2, 2, 2}});
  EXPECT_EQ(time.spans[0], (std::vector<Span>{{0, 1}, {1, 2}, {9, 11}, {13, 15}}));
  EXPECT_EQ(time.spans[1], (std::vector<Span>{{1, 3}, {3, 5}, {5, 9}, {9, 13}}));
  EXPECT_EQ(bubble(time, 0), 1.5);
  EXPECT_EQ(bubble(time, 1), 0.25);
}

TEST(ScheduleTimeline, BubblesAreThePublishedOnes) {
  for (int p : kStages)
    for (int64_t m : kMicroBatches) {
      const double plain = static_cast<double>(p - 1) / static_cast<double>(m);
      expect_bubble(make_schedule("gpipe", p, 1, m), {}, plain);
      expect_bubble(make_schedule("1f1b", p, 1, m), {}, plain);
      if (m % p == 0)
        for (int v : {2, 3}) expect_bubble(make_schedule("interleaved", p, v, m), {}, plain / v);
      if (m >= p) expect_bubble(make_schedule("zero_bubble", p, 1, m), {}, plain / 3);
      // Fewer micro-batches than stages: 2(p-1) - (m-1) units of 3m.
      if (m < p)
        expect_bubble(make_schedule("zero_bubble", p, 1, m), {},
                      static_cast<double>(2 * (p - 1) - (m - 1)) / static_cast<double>(3 * m));
    }
}

TEST(ScheduleTimeline, TheFormulaIsTheTimeline) {
  int compared = 0;
  for (const Costs& costs : {Costs{1, 1, 1}, Costs{1, 1.2, 0.8}, Costs{2, 3, 1}, Costs{3, 1, 1}, Costs{1, 2, 1}})
    for (std::string_view name : schedule_names())
      for (int p = 1; p <= 6; ++p)
        for (int v = 1; v <= (name == "interleaved" ? 3 : 1); ++v)
          for (int64_t m = 1; m <= 13; ++m) {
            if (v > 1 && m % p != 0) continue;
            const Schedule schedule = make_schedule(name, p, v, m);
            expect_bubble(schedule, costs, published_bubble(schedule, costs));
            ++compared;
          }
  EXPECT_EQ(compared, 5 * (4 * 6 * 13 + 2 * (13 + 6 + 4 + 3 + 2 + 2)));
}

// If W exceeds F or B it cannot hide behind them: the bubble is (p-1)(F+B-min(F,B,W)), not (p-1)(F+B-W).
TEST(ScheduleTimeline, DearWeightGradientsLeaveMoreThanTheFormula) {
  for (const Costs& c : {Costs{1, 1, 2}, Costs{2, 2, 3}, Costs{1, 3, 2}, Costs{3, 1, 2}})
    for (int p : {2, 4, 8}) {
      const Schedule schedule = make_schedule("zero_bubble", p, 1, 32);
      const double seen = (p - 1) * (c.forward + c.backward - std::min({c.forward, c.backward, c.weight})) /
                          (32 * (c.forward + c.backward + c.weight));
      expect_bubble(schedule, c, seen);
      EXPECT_GT(seen, published_bubble(schedule, c));
    }
}

TEST(ScheduleTimeline, WhatDoesNotFit) {
  const auto error_of = [](const std::function<void()>& call) -> std::string {
    try {
      call();
    } catch (const base::InternalError& error) {
      return error.what();
    }
    return "no error";
  };
  Schedule schedule = make_schedule("1f1b", 2, 1, 2);
  EXPECT_EQ(error_of([&] {
              timeline(schedule, {Costs{}, Costs{}, Costs{}});
            }),
            "[plan] internal error: costs of 3 chunks for the 2 of schedule \"1f1b\"");
  std::swap(schedule.tasks[1][0], schedule.tasks[1][1]);
  EXPECT_EQ(error_of([&] { timeline(schedule); }),
            "[plan] internal error: schedule \"1f1b\" waits forever on stage 0 at the backward of chunk 0, micro-batch "
            "0");
}

TEST(ScheduleTimeline, FromTasksOfPrograms) {
  for (std::string_view name : schedule_names()) {
    const Schedule made = make_schedule(name, 4, name == "interleaved" ? 3 : 1, 8);
    const Schedule read = schedule_of(std::string(name), made.tasks);
    EXPECT_NO_THROW(check(read));
    EXPECT_EQ(read.stages, made.stages);
    EXPECT_EQ(read.chunks, made.chunks);
    EXPECT_EQ(read.micro_batches, made.micro_batches);
    EXPECT_EQ(read.split, made.split);
    EXPECT_EQ(read.tasks, made.tasks);
  }
}

}  // namespace kintsugi::plan::schedule_timeline_test
