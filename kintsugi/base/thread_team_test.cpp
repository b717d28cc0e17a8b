#include "kintsugi/base/thread_team.h"

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>

namespace kintsugi::base::thread_team_test {

TEST(ThreadTeam, EveryThreadTakesItsShare) {
  ThreadTeam team(3);
  std::vector<int> seen(1000);
  for (int round = 0; round < 200; ++round)
    team.for_shares(1000, 7, [&](Range r, int) {
      for (int64_t i = r.begin; i < r.end; ++i) ++seen[static_cast<size_t>(i)];
    });
  for (int n : seen) EXPECT_EQ(n, 200);
}

TEST(ThreadTeam, SharesCoverWhatTheyCut) {
  for (int64_t total : {0, 1, 5, 64, 1001})
    for (int64_t grain : {1, 8, 100}) {
      int64_t next = 0;
      for (int part = 0; part < 4; ++part) {
        const Range r = share(total, part, 4, grain);
        EXPECT_EQ(r.begin, next);
        next = r.end;
      }
      EXPECT_EQ(next, total);
    }
}

TEST(ThreadTeam, AnErrorComesOutAndTheTeamLivesOn) {
  ThreadTeam team(2);
  EXPECT_THROW(team.run([](int thread) {
    if (thread == 1) throw std::runtime_error("broken");
  }),
               std::runtime_error);
  std::atomic<int> calls{0};
  team.run([&](int) { ++calls; });
  EXPECT_EQ(calls, 2);
}

// A thread that does not start in time does not delay the others: the caller runs its share.
TEST(ThreadTeam, TheCallerMakesCallsThatAreNotBegun) {
  ThreadTeam team(3);
  std::atomic<int> calls{0};
  std::atomic<bool> blocked{false};
  for (int round = 0; round < 3000 && !blocked; ++round) {
    std::array<std::atomic<int>, 3> of{};
    std::array<std::thread::id, 3> by{};
    team.run([&](int thread) {
      ++of[static_cast<size_t>(thread)];
      by[static_cast<size_t>(thread)] = std::this_thread::get_id();
      ++calls;
    });
    for (const auto& n : of) ASSERT_EQ(n, 1);
    blocked = by[0] == by[1] || by[0] == by[2];
  }
  EXPECT_TRUE(blocked);  // calls of no length end before sleeping threads wake up
}

// The balance belongs to the team: teams used alternately by one thread keep what they have learned.
TEST(ThreadTeam, TeamsBalanceByThemselves) {
  TeamBalance slow, even;
  TeamBalance::Clock::time_point now{};
  for (int i = 0; i < 30; ++i) {
    slow.add(std::chrono::milliseconds(2), std::chrono::milliseconds(5), now += std::chrono::milliseconds(5));
    even.add(std::chrono::milliseconds(2), std::chrono::milliseconds(1), now);
    EXPECT_FALSE(even.alone(now));
  }
  EXPECT_TRUE(slow.alone(now));
  EXPECT_TRUE(slow.measures(now));
  EXPECT_FALSE(even.measures(now));
  EXPECT_TRUE(even.measures(now + std::chrono::seconds(1)));
}

// Another program occupies the core of one thread: its share is slow there, and the caller runs it, each share exactly
// once.
TEST(ThreadTeam, TheCallerWorksAloneBesideABusyProgram) {
  using Clock = std::chrono::steady_clock;
  ThreadTeam team(2);
  const auto caller = std::this_thread::get_id();
  int alone = 0, rounds = 0;
  const Clock::time_point begin = Clock::now();
  for (; Clock::now() - begin < std::chrono::milliseconds(300); ++rounds) {
    std::array<std::atomic<int>, 2> calls{};
    std::atomic<bool> elsewhere{false};
    team.run([&](int thread) {
      ++calls[static_cast<size_t>(thread)];
      if (std::this_thread::get_id() == caller) return;
      elsewhere = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    ASSERT_EQ(calls[0], 1);
    ASSERT_EQ(calls[1], 1);
    alone += elsewhere ? 0 : 1;
  }
  // Rounds that wait for the slow thread take 2 ms, the others almost nothing.
  EXPECT_GT(alone, 10 * (rounds - alone)) << rounds;
}

// Occupies a core until the thread has had it for that long. Returns the time that it took.
double compute_for(double seconds) {
  const auto processor_time = [] {
    timespec t = {};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const auto begin = std::chrono::steady_clock::now();
  for (const double end = processor_time() + seconds; processor_time() < end;) {
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

bool two_cores_are_idle() {
  double other = 0;
  std::thread thread([&] { other = compute_for(0.03); });
  const double mine = compute_for(0.03);
  thread.join();
  return std::max(mine, other) < 0.033;
}

// A thread that has a core is worth waiting for. Other programs may keep it from one: up to ten attempts.
TEST(ThreadTeam, AnEvenTeamStaysTogether) {
  ThreadTeam team(2);
  const auto caller = std::this_thread::get_id();
  int alone = -1;
  for (int attempt = 0; attempt < 10 && alone != 0; ++attempt) {
    if (!two_cores_are_idle()) continue;
    alone = 0;
    for (int round = 0; round < 60; ++round) {
      std::atomic<bool> elsewhere{false};
      team.run([&](int) {
        if (std::this_thread::get_id() != caller) elsewhere = true;
        compute_for(0.001);
      });
      alone += elsewhere ? 0 : 1;
    }
    if (alone > 0 && !two_cores_are_idle()) alone = -1;
  }
  if (alone == -1) GTEST_SKIP() << "no two cores are idle";
  EXPECT_EQ(alone, 0);
}

}  // namespace kintsugi::base::thread_team_test
