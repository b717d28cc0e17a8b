#include "kintsugi/base/thread_team.h"

#include <gtest/gtest.h>

#include <stdexcept>

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

}  // namespace kintsugi::base::thread_team_test
