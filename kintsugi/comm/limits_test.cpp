#include "kintsugi/comm/limits.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/transports.h"

namespace kintsugi::comm::limits_test {

TEST(Limits, Threads) {
  require_threads(1);
  require_threads(1024);
  try {
    choose(transports(), "threads", false).make(1'000'000, {});
    FAIL();
  } catch (const base::UserError& error) {
    EXPECT_STREQ(error.what(),
                 "[comm] 1,000,000 ranks cannot be threads of one process, which has at most 1,024; start them as "
                 "processes, by mpirun or srun");
  }
}

TEST(Limits, TimesThatNoClockReaches) {
  EXPECT_EQ(time_limit(600).count(), 600'000);
  EXPECT_EQ(time_limit(0.5).count(), 500);
  EXPECT_EQ(time_limit(1e-9).count(), 1);
  for (const double seconds : {1e10, 1e300}) {
    const auto end = std::chrono::steady_clock::now() + time_limit(seconds);
    EXPECT_GT(end, std::chrono::steady_clock::now() + std::chrono::hours(24 * 365)) << seconds;
    const auto worlds = thread_worlds(1, {.time_limit = time_limit(seconds)});
    EXPECT_EQ(worlds.size(), 1u);
  }
}

}  // namespace kintsugi::comm::limits_test
