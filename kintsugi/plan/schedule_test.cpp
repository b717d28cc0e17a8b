#include "kintsugi/plan/schedule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <climits>
#include <functional>

#include "kintsugi/base/error.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::plan::schedule_test {
namespace {

// "F0.2": forward of chunk 0, micro-batch 2.
std::string text_of(const std::vector<Task>& tasks) {
  std::vector<std::string> words;
  for (const Task& t : tasks) words.push_back(fmt::format("{}{}.{}", name_of(t.work)[0], t.chunk, t.micro_batch));
  return fmt::format("{}", fmt::join(words, " "));
}

std::string error_of(std::string_view name, int stages, int chunks, int64_t micro_batches) {
  try {
    make_schedule(name, stages, chunks, micro_batches);
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

// check() of a schedule modified by `damage`.
std::string refused(Schedule schedule, const std::function<void(Schedule&)>& damage) {
  check(schedule);
  damage(schedule);
  try {
    check(schedule);
  } catch (const base::InternalError& error) {
    return error.what();
  }
  return "no error";
}

// Calls with every schedule of small and usual sizes.
void for_each_schedule(const std::function<void(const Schedule&)>& call) {
  for (std::string_view name : schedule_names())
    for (int stages : {1, 2, 3, 4, 8})
      for (int chunks : {1, 2, 3})
        for (int64_t micro_batches : {1, 2, 3, 4, 8, 24, 32})
          if (error_of(name, stages, chunks, micro_batches) == "no error") {
            SCOPED_TRACE(fmt::format("{} {} {} {}", name, stages, chunks, micro_batches));
            call(make_schedule(name, stages, chunks, micro_batches));
          }
}

}  // namespace

TEST(Schedule, GPipe) {
  const Schedule s = make_schedule("gpipe", 2, 1, 3);
  EXPECT_EQ(text_of(s.tasks[0]), "f0.0 f0.1 f0.2 b0.0 b0.1 b0.2");
  EXPECT_EQ(text_of(s.tasks[1]), "f1.0 f1.1 f1.2 b1.0 b1.1 b1.2");
  EXPECT_FALSE(s.split);
}

TEST(Schedule, OneForwardOneBackward) {
  const Schedule s = make_schedule("1f1b", 3, 1, 4);
  EXPECT_EQ(text_of(s.tasks[0]), "f0.0 f0.1 f0.2 b0.0 f0.3 b0.1 b0.2 b0.3");
  EXPECT_EQ(text_of(s.tasks[1]), "f1.0 f1.1 b1.0 f1.2 b1.1 f1.3 b1.2 b1.3");
  EXPECT_EQ(text_of(s.tasks[2]), "f2.0 b2.0 f2.1 b2.1 f2.2 b2.2 f2.3 b2.3");
  EXPECT_EQ(text_of(make_schedule("1f1b", 1, 1, 3).tasks[0]), "f0.0 b0.0 f0.1 b0.1 f0.2 b0.2");
  EXPECT_EQ(text_of(make_schedule("1f1b", 4, 1, 2).tasks[0]), "f0.0 f0.1 b0.0 b0.1");
}

TEST(Schedule, Interleaved) {
  // Figure 4 of Narayanan et al. 2021, there with 4 stages and 8 micro-batches.
  const Schedule s = make_schedule("interleaved", 2, 2, 4);
  EXPECT_EQ(text_of(s.tasks[0]), "f0.0 f0.1 f2.0 f2.1 f0.2 b2.0 f0.3 b2.1 f2.2 b0.0 f2.3 b0.1 b2.2 b2.3 b0.2 b0.3");
  EXPECT_EQ(text_of(s.tasks[1]), "f1.0 f1.1 f3.0 b3.0 f3.1 b3.1 f1.2 b1.0 f1.3 b1.1 f3.2 b3.2 f3.3 b3.3 b1.2 b1.3");
  EXPECT_EQ(text_of(make_schedule("interleaved", 1, 2, 2).tasks[0]), "f0.0 f1.0 b1.0 f0.1 b0.0 f1.1 b1.1 b0.1");
  for (int64_t m : {1, 3, 8})
    EXPECT_EQ(make_schedule("interleaved", 4, 1, m).tasks, make_schedule("1f1b", 4, 1, m).tasks);
}

TEST(Schedule, ZeroBubble) {
  const Schedule s = make_schedule("zero_bubble", 3, 1, 4);
  EXPECT_TRUE(s.split);
  EXPECT_EQ(text_of(s.tasks[0]), "f0.0 f0.1 f0.2 b0.0 w0.0 f0.3 b0.1 w0.1 b0.2 w0.2 b0.3 w0.3");
  EXPECT_EQ(text_of(s.tasks[1]), "f1.0 f1.1 b1.0 f1.2 b1.1 w1.0 f1.3 b1.2 w1.1 b1.3 w1.2 w1.3");
  EXPECT_EQ(text_of(s.tasks[2]), "f2.0 b2.0 f2.1 b2.1 f2.2 b2.2 w2.0 f2.3 b2.3 w2.1 w2.2 w2.3");
  EXPECT_EQ(text_of(make_schedule("zero_bubble", 1, 1, 2).tasks[0]), "f0.0 b0.0 w0.0 f0.1 b0.1 w0.1");
  EXPECT_EQ(text_of(make_schedule("zero_bubble", 3, 1, 1).tasks[2]), "f2.0 b2.0 w2.0");
}

TEST(Schedule, TheKeyAllowsEach) {
  const config::Key& key = config::keys()[static_cast<size_t>(config::key_index("parallel.schedule"))];
  EXPECT_EQ(std::get<config::OneOf>(key.allowed).words, schedule_names());
}

TEST(Schedule, AllPassTheCheck) {
  int made = 0;
  for_each_schedule([&](const Schedule& s) {
    EXPECT_NO_THROW(check(s));
    ++made;
  });
  EXPECT_EQ(made, 4 * 5 * 7 + 2 * (7 + 5 + 2 + 4 + 3));
}

TEST(Schedule, MicroBatchesInFlight) {
  for_each_schedule([](const Schedule& s) {
    const int64_t m = s.micro_batches, p = s.stages, v = s.chunks;
    for (int stage = 0; stage < s.stages; ++stage) {
      SCOPED_TRACE(stage);
      const InFlight all = in_flight(s, stage), whole = in_flight(s, stage, Work::backward);
      if (s.name == "gpipe") {
        EXPECT_EQ(all.together, m);
      } else if (s.name == "zero_bubble") {
        // Whole activations as in 1F1B; activations of pending weight gradients, on later stages, for as many as the
        // first has.
        EXPECT_EQ(whole.together, std::min(m, p - stage));
        EXPECT_EQ(all.together, std::min(m, p));
      } else if (v == 1) {
        EXPECT_EQ(all.together, std::min(m, p - stage));
      } else {
        // On the first stage pv + p - 1 chunks, (1 + (p-1)/(pv)) times 1F1B: Korthikanti et al. 2022, section 4.2.3.
        EXPECT_EQ(all.together, std::min(m * v, (v - 1) * p + 2 * (p - stage) - 1));
      }
      if (!s.split) {
        EXPECT_EQ(whole.by_chunk, all.by_chunk);
      }
      if (v == 1) {
        EXPECT_EQ(all.by_chunk, std::vector<int64_t>{all.together});
      }
    }
  });
  const Schedule s = make_schedule("interleaved", 4, 2, 8);
  EXPECT_EQ(in_flight(s, 0).by_chunk, (std::vector<int64_t>{8, 4}));
  EXPECT_EQ(in_flight(s, 3).by_chunk, (std::vector<int64_t>{5, 1}));
}

// A whole activation counts `whole`, what remains for the weight gradient `rest`: the peak of a stage.
int64_t most_memory(const Schedule& s, int stage, int64_t whole, int64_t rest) {
  int64_t now = 0, most = 0;
  for (const Task& t : s.tasks[static_cast<size_t>(stage)]) {
    now += t.work == Work::forward ? whole : t.work == Work::backward ? (s.split ? rest : 0) - whole : -rest;
    most = std::max(most, now);
  }
  return most;
}

TEST(Schedule, ZeroBubbleNeedsNoMoreThanTheFirstStageOf1F1B) {
  for (int p : {1, 2, 4, 8})
    for (int64_t m : {8, 32}) {
      const Schedule zero = make_schedule("zero_bubble", p, 1, m), one = make_schedule("1f1b", p, 1, m);
      for (int stage = 0; stage < p; ++stage) {
        EXPECT_EQ(most_memory(zero, stage, 5, 3), 5 * (p - stage) + 3 * stage);
        EXPECT_LE(most_memory(zero, stage, 5, 5), most_memory(one, 0, 5, 5));
      }
      EXPECT_EQ(most_memory(zero, 0, 5, 3), most_memory(one, 0, 5, 3));
    }
}

TEST(Schedule, BadNumbers) {
  EXPECT_EQ(error_of("1f2b", 2, 1, 2),
            "[plan] unknown schedule \"1f2b\"; did you mean 1f1b? There are gpipe, 1f1b, interleaved, zero_bubble");
  EXPECT_EQ(error_of("gpipe", 0, 1, 2), "[plan] schedule \"gpipe\" of 0 stages; nearest stages: 1");
  EXPECT_EQ(error_of("gpipe", 2, 0, 2), "[plan] schedule \"gpipe\" with 0 chunks per stage; nearest chunks: 1");
  EXPECT_EQ(error_of("1f1b", 2, 1, 0), "[plan] schedule \"1f1b\" with 0 micro-batches; nearest micro-batches: 1");
  EXPECT_EQ(error_of("interleaved", 4, 2, -3),
            "[plan] schedule \"interleaved\" with -3 micro-batches; nearest micro-batches: 4");
  for (std::string_view name : {"gpipe", "1f1b", "zero_bubble"})
    EXPECT_EQ(error_of(name, 2, 3, 2),
              fmt::format("[plan] schedule \"{}\" has one chunk per stage, not 3; nearest chunks: 1; a schedule that "
                          "has several: interleaved",
                          name));
  EXPECT_EQ(error_of("interleaved", 4, 2, 6),
            "[plan] schedule \"interleaved\" of 4 stages takes a multiple of 4 micro-batches, not 6; nearest "
            "micro-batches: 4, 8");
  EXPECT_EQ(error_of("interleaved", 4, 2, 3),
            "[plan] schedule \"interleaved\" of 4 stages takes a multiple of 4 micro-batches, not 3; nearest "
            "micro-batches: 4");
  EXPECT_EQ(error_of("1f1b", 4, 1, INT64_MAX),
            "[plan] schedule \"1f1b\" with 4 chunks in all and 9223372036854775807 micro-batches has more "
            "than 16777216 tasks; nearest micro-batches: 2097152");
  EXPECT_EQ(error_of("interleaved", 3, 2, INT64_MAX),
            "[plan] schedule \"interleaved\" with 6 chunks in all and 9223372036854775807 micro-batches has "
            "more than 16777216 tasks; nearest micro-batches: 1398099");
  EXPECT_EQ(error_of("interleaved", INT_MAX, INT_MAX, 1),
            "[plan] schedule \"interleaved\" with 4611686014132420609 chunks in all and 1 micro-batches has "
            "more than 16777216 tasks");
}

TEST(Schedule, CheckRefusesDamage) {
  const Schedule one = make_schedule("1f1b", 2, 1, 3), many = make_schedule("interleaved", 2, 2, 4);
  const std::string begin = "[plan] internal error: schedule ";
  EXPECT_EQ(refused(one, [](Schedule& s) { s.tasks[1].erase(s.tasks[1].begin() + 2); }),
            begin + "\"1f1b\" lacks the task forward of chunk 1, micro-batch 1 on stage 1");
  EXPECT_EQ(refused(one, [](Schedule& s) { s.tasks[0].pop_back(); }),
            begin + "\"1f1b\" lacks the task backward of chunk 0, micro-batch 2 on stage 0");
  EXPECT_EQ(refused(one,
                    [](Schedule& s) {
                      s.tasks[0].push_back({Work::forward, 0, 1});
                    }),
            begin + "\"1f1b\" has the task forward of chunk 0, micro-batch 1 twice on stage 0");
  EXPECT_EQ(refused(many, [](Schedule& s) { s.tasks[0][2].chunk = 1; }),
            begin + "\"interleaved\" has the task forward of chunk 1, micro-batch 0 on stage 0; its stage is 1");
  EXPECT_EQ(refused(many, [](Schedule& s) { s.tasks[1][2].chunk = 5; }),
            begin +
                "\"interleaved\" of 4 chunks and 4 micro-batches has the task forward of chunk 5, micro-batch 0 on "
                "stage 1");
  EXPECT_EQ(
      refused(one, [](Schedule& s) { s.tasks[1][0].micro_batch = 3; }),
      begin + "\"1f1b\" of 2 chunks and 3 micro-batches has the task forward of chunk 1, micro-batch 3 on stage 1");
  EXPECT_EQ(
      refused(one, [](Schedule& s) { s.tasks[1][0].chunk = -1; }),
      begin + "\"1f1b\" of 2 chunks and 3 micro-batches has the task forward of chunk -1, micro-batch 0 on stage 1");
  EXPECT_EQ(refused(one,
                    [](Schedule& s) {
                      s.tasks[1].push_back({Work::weight, 1, 0});
                    }),
            begin +
                "\"1f1b\" has the task weight of chunk 1, micro-batch 0 on stage 1, but its weight gradients are made "
                "in backward");
  EXPECT_EQ(refused(one, [](Schedule& s) { s.split = true; }),
            begin + "\"1f1b\" lacks the task weight of chunk 0, micro-batch 0 on stage 0");
  EXPECT_EQ(refused(one, [](Schedule& s) { std::swap(s.tasks[0][0], s.tasks[0][1]); }),
            begin +
                "\"1f1b\" has the task forward of chunk 0, micro-batch 1 on stage 0 before micro-batch 0; they come in "
                "ascending order");
  EXPECT_EQ(refused(one, [](Schedule& s) { s.tasks.pop_back(); }), begin + "\"1f1b\" of 2 stages has tasks of 1");
  EXPECT_EQ(refused(one, [](Schedule& s) { s.micro_batches = 0; }),
            begin + "\"1f1b\" has 2 stages, 1 chunks per stage and 0 micro-batches");
}

TEST(Schedule, CheckRefusesWhatWaitsForever) {
  const std::string begin = "[plan] internal error: schedule ";
  // On one stage: a task waits for a later one.
  EXPECT_EQ(refused(make_schedule("1f1b", 2, 1, 1), [](Schedule& s) { std::swap(s.tasks[1][0], s.tasks[1][1]); }),
            begin +
                "\"1f1b\" waits forever: stage 1 at backward of chunk 1, micro-batch 0 for forward of chunk 1, "
                "micro-batch 0");
  EXPECT_EQ(
      refused(make_schedule("zero_bubble", 2, 1, 1), [](Schedule& s) { std::swap(s.tasks[0][1], s.tasks[0][2]); }),
      begin +
          "\"zero_bubble\" waits forever: stage 0 at weight of chunk 0, micro-batch 0 for backward of chunk 0, "
          "micro-batch 0");
  // On two: one waits for a gradient, the other for an input. Stage 0 waits for them, and is not named.
  EXPECT_EQ(refused(make_schedule("gpipe", 3, 1, 2), [](Schedule& s) { std::swap(s.tasks[1][1], s.tasks[1][2]); }),
            begin +
                "\"gpipe\" waits forever: stage 1 at backward of chunk 1, micro-batch 0 for backward of chunk 2, "
                "micro-batch 0; stage 2 at forward of chunk 2, micro-batch 1 for forward of chunk 1, micro-batch 1");
}

}  // namespace kintsugi::plan::schedule_test
