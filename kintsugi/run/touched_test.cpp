#include "kintsugi/run/touched.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <span>

namespace kintsugi::run::touched_test {
namespace {

using tensor::View;

class TouchedTest : public testing::Test {
 protected:
  // The bytes from `begin` to `end` of a memory.
  std::array<View, 1> bytes(int begin, int end) {
    return {View{memory_.data() + begin, {{{"flat", end - begin}}, tensor::DType::u8}}};
  }
  bool reads(int begin, int end, size_t group = 0) {
    return touched_.must_wait(*groups_.at(group), bytes(begin, end), {});
  }
  bool writes(int begin, int end, size_t group = 0) {
    return touched_.must_wait(*groups_.at(group), {}, bytes(begin, end));
  }

  std::array<std::byte, 100> memory_ = {};
  const std::array<std::unique_ptr<comm::Communicator>, 2> groups_ = {comm::self_communicator(),
                                                                      comm::self_communicator()};
  Touched touched_;
};

TEST_F(TouchedTest, AGroupWaitsOnceInEachList) {
  for (int list = 0; list < 2; ++list) {
    touched_.begin_list();
    EXPECT_TRUE(reads(0, 10));
    EXPECT_FALSE(reads(0, 10));
    EXPECT_FALSE(writes(0, 10));
    EXPECT_TRUE(reads(0, 10, 1));
  }
}

TEST_F(TouchedTest, WhatWasWrittenIsWaitedForOnce) {
  EXPECT_TRUE(reads(0, 100));
  touched_.add({}, bytes(10, 20));
  EXPECT_FALSE(reads(0, 10));
  EXPECT_FALSE(writes(20, 30));
  EXPECT_TRUE(reads(19, 30));
  EXPECT_FALSE(writes(0, 100));
}

TEST_F(TouchedTest, WhatWasReadMayBeReadButNotWritten) {
  EXPECT_TRUE(reads(0, 100));
  touched_.add(bytes(10, 20), {});
  EXPECT_FALSE(reads(0, 100));
  EXPECT_TRUE(writes(0, 11));
}

TEST_F(TouchedTest, EachGroupKnowsWhatItWaitedFor) {
  EXPECT_TRUE(reads(0, 1));
  EXPECT_TRUE(reads(0, 1, 1));
  touched_.add({}, {}, std::span(memory_).first(10));
  EXPECT_TRUE(reads(0, 1));
  touched_.add({}, bytes(50, 60));
  EXPECT_FALSE(reads(0, 10));
  EXPECT_TRUE(reads(0, 10, 1));  // the workspace, and with it all
  EXPECT_FALSE(reads(50, 60, 1));
  EXPECT_TRUE(reads(50, 60));
}

}  // namespace
}  // namespace kintsugi::run::touched_test
