#include "kintsugi/jobs/reach.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

namespace kintsugi::jobs::reach_test {
namespace {

using namespace std::chrono_literals;

TEST(Reach, ThisMachineResponds) {
  EXPECT_TRUE(responds("127.0.0.1", 5s));
  EXPECT_FALSE(responds("", 1s));
  EXPECT_FALSE(responds("n3", 1s));
  if (const std::string address = address_of_this_machine(); !address.empty()) {
    EXPECT_TRUE(responds(address, 5s)) << address;
  }
}

TEST(Reach, AMachineIsDownAfterThreeSilences) {
  bool up = true;
  int asked = 0;
  Reach reach([&](const std::string&, std::chrono::milliseconds) {
    ++asked;
    return up;
  });
  const auto down = [&] {
    std::this_thread::sleep_for(750ms);
    return reach.is_down("10.0.0.1");
  };
  EXPECT_FALSE(reach.is_down("10.0.0.1"));  // not known
  reach.learn("10.0.0.1");
  reach.learn("10.0.0.1");
  EXPECT_EQ(asked, 1);
  EXPECT_FALSE(down());
  up = false;
  EXPECT_FALSE(down());
  EXPECT_FALSE(reach.is_down("10.0.0.1"));  // too soon to ask again
  EXPECT_FALSE(down());
  EXPECT_TRUE(down());
  EXPECT_EQ(asked, 5);
  reach.clear("10.0.0.1");
  EXPECT_FALSE(down());
}

TEST(Reach, SilenceOfAMachineThatNeverRespondedProvesNothing) {
  int asked = 0;
  Reach reach([&](const std::string&, std::chrono::milliseconds) {
    ++asked;
    return false;
  });
  for (int i = 0; i < 5; ++i) reach.learn("10.0.0.1");
  EXPECT_EQ(asked, 3);
  EXPECT_FALSE(reach.is_down("10.0.0.1"));
  EXPECT_EQ(asked, 3);
  for (int i = 0; i < 100; ++i) reach.learn("10.0.1." + std::to_string(i));
  EXPECT_EQ(asked, 7);
}

}  // namespace
}  // namespace kintsugi::jobs::reach_test
