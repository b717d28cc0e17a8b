#include "kintsugi/program/order_walk.h"

#include <gtest/gtest.h>

namespace kintsugi::program::order_walk_test {
namespace {

Touch touch(int64_t begin, int64_t end, bool written) {
  return {{.space = Space::arena, .begin = begin, .end = end}, written};
}

class StreamTouchesTest : public testing::Test {
 protected:
  bool reads(int64_t begin, int64_t end, int queue = 1) {
    return touches_.must_wait(queue, {touch(begin, end, false)});
  }
  bool writes(int64_t begin, int64_t end, int queue = 1) {
    return touches_.must_wait(queue, {touch(begin, end, true)});
  }

  StreamTouches touches_;
};

TEST_F(StreamTouchesTest, AQueueWaitsOnce) {
  EXPECT_TRUE(reads(0, 10));
  EXPECT_FALSE(reads(0, 10));
  EXPECT_FALSE(writes(0, 10));
  EXPECT_TRUE(reads(0, 10, 2));
}

TEST_F(StreamTouchesTest, ForWhatWasWritten) {
  EXPECT_TRUE(reads(0, 100));
  touches_.add(touch(10, 20, true));
  EXPECT_FALSE(reads(0, 10));
  EXPECT_FALSE(writes(20, 30));
  EXPECT_TRUE(reads(19, 30));
  EXPECT_FALSE(writes(0, 100));
}

TEST_F(StreamTouchesTest, WhatWasReadMayBeReadButNotWritten) {
  EXPECT_TRUE(reads(0, 100));
  touches_.add(touch(10, 20, false));
  EXPECT_FALSE(reads(0, 100));
  EXPECT_TRUE(writes(0, 11));
}

TEST_F(StreamTouchesTest, EachQueueKnowsWhatItWaitedFor) {
  EXPECT_TRUE(reads(0, 1));
  EXPECT_TRUE(reads(0, 1, 2));
  touches_.add({touch(0, 10, true), touch(12, 14, false)});
  EXPECT_TRUE(reads(0, 1));
  touches_.add(touch(50, 60, true));
  EXPECT_FALSE(reads(0, 10));
  EXPECT_TRUE(reads(0, 10, 2));  // and with it everything before
  EXPECT_FALSE(reads(50, 60, 2));
  EXPECT_TRUE(reads(50, 60));
}

// Both parts of an all-gather's result count as the whole.
TEST(Touches, OfAnInstruction) {
  Program p;
  p.mesh = mesh::Mesh({{"data", 2}});
  p.arena_bytes = 256;
  p.buffers = {{.name = "x", .type = {{{"flat", 32}}, tensor::DType::f32}, .offset = 0},
               {.name = "part", .type = {{{"flat", 16}}, tensor::DType::f32}, .same_as = 0, .part = {0}},
               {.name = "file", .type = {{{"flat", 16}}, tensor::DType::f32}, .region = Region::file, .offset = 0},
               {.name = "scratch", .type = {{{"flat", 16}}, tensor::DType::f32}, .offset = 128}};
  p.lists = {{.step = Step::train, .calls = {{}}, .slots = {{}}}};
  Instruction i;
  i.ins = {2, 1};
  i.outs = {0};
  i.workspace = 3;
  p.bodies = {{.name = "body", .instructions = {i}}};
  std::vector<Touch> touches = {{}};
  Touches(p).get(0, p.lists[0], p.lists[0].calls[0], touches);
  ASSERT_EQ(touches.size(), 3u);
  EXPECT_EQ(touches[0].bytes.end, 128);
  EXPECT_FALSE(touches[0].written);
  EXPECT_EQ(touches[1].bytes.end, 128);
  EXPECT_TRUE(touches[1].written);
  EXPECT_EQ(touches[2].bytes.begin, 128);
  EXPECT_TRUE(touches[2].written);
}

}  // namespace
}  // namespace kintsugi::program::order_walk_test
