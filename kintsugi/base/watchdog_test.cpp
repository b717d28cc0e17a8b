#include "kintsugi/base/watchdog.h"

#include <gtest/gtest.h>

#include <csignal>
#include <thread>

#include "kintsugi/base/patience.h"

namespace kintsugi::base {
namespace {

// Time in which a process stands still is not time that it waits.
TEST(Patience, WaitsOnlyWhileItRuns) {
  Patience patience(std::chrono::milliseconds(800));
  std::this_thread::sleep_for(std::chrono::milliseconds(1500));  // it should be asked more often
  EXPECT_FALSE(patience.is_over());
  EXPECT_GT(patience.stood_still().count(), 0.9);
  const auto start = Patience::Clock::now();
  while (!patience.is_over()) std::this_thread::sleep_until(patience.slice_end());
  EXPECT_LT(Patience::Clock::now() - start, std::chrono::seconds(10));
  EXPECT_TRUE(patience.is_long());
}

TEST(Watchdog, LetsEndWhatIsInTime) {
  const Watchdog watchdog("base", "nothing", "", std::chrono::minutes(1));
}

TEST(Watchdog, EndsTheProcess) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        const Watchdog watchdog("base", "a long sleep", "; is it night?", std::chrono::milliseconds(200));
        std::this_thread::sleep_for(std::chrono::seconds(30));
      },
      testing::KilledBySignal(SIGTERM),
      "error: \\[base\\] rank 0: a long sleep did not end within 0.2 s; is it night\\?");
}

}  // namespace
}  // namespace kintsugi::base
