#include "kintsugi/compile/fit.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kintsugi::compile::fit_test {
namespace {

// The message about a rank that needs one byte more.
std::string limit(const std::string& per_rank, const Machine& machine, int64_t ranks) {
  config::Settings s;
  s.parallel.memory_per_rank = per_rank;
  s.parallel.ranks = ranks;
  const auto limit = memory_limit(s, machine);
  if (!limit) return "none";
  const std::string text = one_line({.bytes = limit->bytes + 1, .limit = *limit});
  const size_t begin = text.find("only "), end = text.find("; most of it");
  return text.substr(begin, end - begin);
}

TEST(MemoryLimits, WhatIsGivenElseTheSmallerOfMachineAndGroup) {
  constexpr int64_t kGiB = int64_t{1} << 30;
  EXPECT_EQ(limit("1 GiB", {.memory = {8 * kGiB, 4 * kGiB}}, 4),
            "only 1,073,741,824 bytes (1.0 GiB) is available, [parallel] memory_per_rank");
  EXPECT_EQ(limit("", {.memory = {8 * kGiB, 4 * kGiB}}, 4),
            "only 1,073,741,824 bytes (1.0 GiB) is available, the control group's 4.0 GiB over 4 ranks");
  EXPECT_EQ(limit("", {.memory = {8 * kGiB, 16 * kGiB}}, 2),
            "only 4,294,967,296 bytes (4.0 GiB) is available, this machine's 8.0 GiB over 2 ranks");
  EXPECT_EQ(limit("", {.memory = {8 * kGiB, 8 * kGiB}, .processes = 4}, 64),
            "only 2,147,483,648 bytes (2.0 GiB) is available, this machine's 8.0 GiB over 4 ranks");
  EXPECT_EQ(limit("", {.memory = {8 * kGiB, 0}}, 1),
            "only 8,589,934,592 bytes (8.0 GiB) is available, this machine's 8.0 GiB");
  EXPECT_EQ(limit("", {.memory = {0, 4 * kGiB}}, 1),
            "only 4,294,967,296 bytes (4.0 GiB) is available, the control group's 4.0 GiB");
  EXPECT_EQ(limit("", {.memory = {8 * kGiB, 0}, .device_free = 60 * kGiB, .device = 80 * kGiB}, 4),
            "only 16,106,127,360 bytes (15.0 GiB) is available, the 60.0 GiB that are free of the device's 80.0 GiB "
            "over 4 ranks");
  EXPECT_EQ(limit("", {.processes = 4, .device_free = 60 * kGiB, .device = 80 * kGiB}, 4),
            "only 64,424,509,440 bytes (60.0 GiB) is available, the 60.0 GiB that are free of the device's 80.0 GiB");
  EXPECT_EQ(limit("", {}, 1), "none");
  config::Settings on_a_card;
  on_a_card.parallel.device = "cuda";
  EXPECT_FALSE(memory_limit(on_a_card, {.memory = {8 * kGiB, 0}}));
}

TEST(MemoryLimits, TheWholeText) {
  Excess e = {
      .stage = 1,
      .stages = 4,
      .rank = 2,
      .bytes = 86'859'678'144,
      .limit = {.bytes = 68'719'476'736},
      .largest = {{"activations", 34'388'836'352}, {"optimizer", 33'873'002'496}, {"gradients", 11'291'000'832}},
      .fitting = {{{{"parallel.zero", int64_t{1}}}, 30'000'000'000},
                  {{{"parallel.tensor", int64_t{4}}, {"parallel.data", int64_t{1}}}, 40'000'000'000}}};
  const std::string head =
      "rank 2 (stage 1 of 4) needs 86,859,678,144 bytes (80.9 GiB) but only 68,719,476,736 bytes (64.0 GiB) is "
      "available, "
      "[parallel] memory_per_rank; most of it is activations 32.0 GiB, optimizer 31.5 GiB, gradients 10.5 GiB";
  EXPECT_EQ(one_line(e), head +
                             "; parallel.zero = 1 saves 30,000,000,000 bytes (27.9 GiB) and fits; parallel.tensor = "
                             "4, parallel.data = 1 saves 40,000,000,000 bytes (37.3 GiB) and fits");
  EXPECT_EQ(describe(e).size(), 3u);
  e.fitting.clear();
  EXPECT_EQ(one_line(e),
            head + "; nothing that could be changed here makes it fit; it needs more ranks or more memory");
  e.together = {{{"train.micro_batch", int64_t{1}}, {"parallel.recompute", std::string("full")}}, 50'000'000'000};
  e.stages = 1;
  e.rank = 0;
  EXPECT_EQ(
      one_line(e),
      "rank 0 needs 86,859,678,144 bytes (80.9 GiB) but only 68,719,476,736 bytes (64.0 GiB) is available, [parallel] "
      "memory_per_rank; most of it is activations 32.0 GiB, optimizer 31.5 GiB, gradients 10.5 GiB; no single "
      "change fits; all of them together do: train.micro_batch = 1, parallel.recompute = \"full\" saves 50,000,000,000 "
      "bytes (46.6 GiB) and fits");
}

TEST(MemoryLimits, ChangesThatWereNotTried) {
  const std::string all = one_line({.bytes = 2, .limit = {.bytes = 1}, .not_tried = 3});
  EXPECT_NE(all.find("3 changes not tried"), std::string::npos) << all;
  EXPECT_EQ(one_line({.bytes = 2, .limit = {.bytes = 1}}).find("not tried"), std::string::npos);
}

}  // namespace
}  // namespace kintsugi::compile::fit_test
