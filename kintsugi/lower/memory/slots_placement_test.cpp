#include "kintsugi/lower/memory/slots_placement.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

namespace kintsugi::lower::slots_placement_test {
namespace {

// Live in these calls, with one tick each.
Instance instance(int64_t bytes, int first, int last) {
  return {bytes, {first, last}, {first, last}};
}

std::string text(const Placement& p) {
  return fmt::format("instances {} temporaries {} bytes {}", p.instances, p.temporaries, p.bytes);
}

}  // namespace

// In call 0 the temporaries are below the first instance, in call 3 above the second. One offset for both calls is
// above or below both instances, and pack() places the larger instance where nothing fits below it.
TEST(Placement, StackedIsTheSmallest) {
  const ArenaDemand d = {.instances = {instance(128, 0, 2), instance(192, 2, 3)}, .temporaries = {{192, {0, 3}}}};
  EXPECT_EQ(text(place_stacked(d)), "instances [192, 0] temporaries [[0, 192]] bytes 384");
  EXPECT_EQ(text(place_packed(d)), "instances [0, 320] temporaries [[128, 128]] bytes 512");
  EXPECT_EQ(text(place_beside(d)), "instances [0, 128] temporaries [[128, 320]] bytes 512");
  EXPECT_EQ(place(d).method, PlacementMethod::stacked);
}

// The second instance is high enough for the temporaries below it.
TEST(Placement, PackedIsTheSmallest) {
  const ArenaDemand d = {.instances = {instance(64, 0, 1), instance(64, 1, 2)}, .temporaries = {{128, {2}}}};
  EXPECT_EQ(text(place_stacked(d)), "instances [0, 64] temporaries [[128]] bytes 256");
  EXPECT_EQ(text(place_packed(d)), "instances [0, 128] temporaries [[0]] bytes 192");
  EXPECT_EQ(text(place_beside(d)), "instances [0, 64] temporaries [[128]] bytes 256");
  EXPECT_EQ(place(d).method, PlacementMethod::packed);
}

// In call 0 the temporaries are below the instances, in call 2 above them.
TEST(Placement, BesideIsTheSmallest) {
  const ArenaDemand d = {.instances = {instance(128, 1, 2), instance(64, 0, 1), instance(64, 0, 2)},
                         .temporaries = {{128, {0, 2}}}};
  EXPECT_EQ(text(place_stacked(d)), "instances [0, 128, 192] temporaries [[0, 256]] bytes 384");
  EXPECT_EQ(text(place_packed(d)), "instances [128, 320, 256] temporaries [[0, 0]] bytes 384");
  EXPECT_EQ(text(place_beside(d)), "instances [0, 192, 128] temporaries [[0, 192]] bytes 320");
  EXPECT_EQ(place(d).method, PlacementMethod::beside);
}

// One instance ends in the call in which the other starts, but at an earlier tick.
TEST(Placement, TicksShareACall) {
  const ArenaDemand d = {.ticks = 8, .instances = {{64, {0, 1}, {5, 9}}, {64, {1, 2}, {10, 17}}}, .temporaries = {}};
  for (const auto method : {place_stacked, place_packed, place_beside})
    EXPECT_EQ(text(method(d)), "instances [0, 0] temporaries [] bytes 64");
  EXPECT_EQ(place(d).method, PlacementMethod::stacked);  // the first of three
}

TEST(Placement, NothingToPlace) {
  EXPECT_EQ(text(place({})), "instances [] temporaries [] bytes 0");
  EXPECT_EQ(text(place({.instances = {}, .temporaries = {{64, {1, 2}}}})),
            "instances [] temporaries [[0, 0]] bytes 64");
}

// Better packed than stacked, many times.
TEST(Placement, ManyInstancesAreStacked) {
  ArenaDemand d;
  for (int call = 0; d.instances.size() < kFewInstances; call += 3) {
    d.instances.push_back(instance(128, call + 1, call + 2));
    d.instances.push_back(instance(64, call, call + 1));
    d.instances.push_back(instance(64, call, call + 2));
    d.temporaries.push_back({128, {call, call + 2}});
  }
  EXPECT_EQ(place(d).method, PlacementMethod::beside);
  EXPECT_EQ(place(d).bytes, 320);
  d.enough = 384;
  EXPECT_EQ(place(d).method, PlacementMethod::stacked);
  d.enough = 0;
  d.instances.push_back(instance(64, 1000000, 1000001));
  EXPECT_EQ(place(d).method, PlacementMethod::stacked);
  EXPECT_EQ(place(d).bytes, 384);
}

}  // namespace kintsugi::lower::slots_placement_test
