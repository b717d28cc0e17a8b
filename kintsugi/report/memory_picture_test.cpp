#include "kintsugi/report/memory_picture.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/patterns.h"

namespace kintsugi::report::memory_picture_test {
namespace {

using program::BufferId;
using program::Program;
using program::Region;

// `calls` micro-batches of a body that writes a value and reads it.
Program made(int64_t calls) {
  Program p;
  const auto buffer = [&](int64_t bytes, Region region) {
    program::Buffer b;
    b.type = {{{"byte", bytes}}, tensor::DType::u8};
    b.region = region;
    b.offset = 0;
    p.buffers.push_back(b);
    return static_cast<BufferId>(p.buffers.size()) - 1;
  };
  program::StateInfo weight;
  weight.kind = program::StateKind::weight;
  weight.buffer = buffer(4096, Region::state);
  p.states.push_back(weight);
  p.state_bytes = 4096;
  program::Instruction make, read;
  make.outs = {buffer(2048, Region::arena)};
  make.workspace = buffer(1024, Region::arena);
  read.ins = make.outs;
  p.bodies.push_back({.name = "forward", .instructions = {make, read}});
  p.lists.push_back({.step = program::Step::train, .calls = {}, .arena_bytes = 4096});
  for (int64_t m = 0; m < calls; ++m) p.lists[0].calls.push_back({0, m});
  p.arena_bytes = 4096;
  return p;
}

// Elements nest and are all closed; there are no other < or &.
bool well_formed(const std::string& svg) {
  std::vector<std::string> open;
  const std::string tag = R"re(<(/?)([a-z]+)((?: [A-Za-z-]+="[^"<&]*")*)(/?)>)re";
  size_t at = 0;
  for (const tests::Match& match : tests::find_all(svg, tag)) {
    const std::string between = svg.substr(at, match.position - at);
    if (tests::replaced(between, "&(amp|lt|gt);", "").find_first_of("<&") != std::string::npos) return false;
    at = match.position + match.groups[0].size();
    if (!match.groups[1].empty()) {
      if (open.empty() || open.back() != match.groups[2]) return false;
      open.pop_back();
    } else if (match.groups[4].empty()) {
      open.push_back(match.groups[2]);
    }
  }
  return open.empty() && svg.substr(at) == "\n";
}

bool has(const std::string& svg, const std::string& text) {
  return svg.find(text) != std::string::npos;
}

TEST(MemoryPicture, AnInstructionIsAStep) {
  const std::string svg = memory_picture(made(2), "Memory of <a & b>");
  EXPECT_TRUE(well_formed(svg)) << svg;
  EXPECT_TRUE(has(svg, ">Memory of &lt;a &amp; b&gt;</text>"));
  EXPECT_TRUE(has(svg, ">instructions of a step, in order</text>"));
  EXPECT_TRUE(has(svg, ">memory of a rank</text>"));
  EXPECT_TRUE(has(svg, ">allocated: 8.0 KiB (8,192 bytes)</text>"));
  EXPECT_TRUE(has(svg, ">2 KiB</text>"));
  // The lower half is weights over the whole width: half of the height of 320 above the axis at 396.
  EXPECT_TRUE(has(svg, R"(<path d="M76.0 236.0H986.0L986.0 396.0H76.0Z" fill="#4c72b0"><title>weights</title></path>)"))
      << svg;
  // The workspace is live during the first of two instructions, twice.
  EXPECT_TRUE(has(
      svg,
      R"(<path d="M76.0 196.0H303.5V236.0H531.0V196.0H758.5V236.0H986.0L986.0 236.0H76.0Z" fill="#c9b3de"><title>workspace</title></path>)"))
      << svg;
  EXPECT_FALSE(has(svg, "<title>gradients</title>"));
}

TEST(MemoryPicture, PhasesAndPackingAreTold) {
  Program p = made(2);
  p.bodies.push_back({.name = "update", .instructions = p.bodies[0].instructions, .work = program::Work::update});
  p.lists[0].calls.push_back({1, -1});
  p.lists[0].lower_bound_bytes = 3072;
  const std::string svg = memory_picture(p, "m");
  EXPECT_TRUE(well_formed(svg)) << svg;
  // Two calls of two instructions, and one: two thirds, and a third.
  EXPECT_TRUE(has(svg, R"(<path d="M76.0 397.0H682.7v10H76.0Z" fill="#5aa9a3"><title>forward</title></path>)")) << svg;
  EXPECT_TRUE(has(svg, R"(<path d="M682.7 397.0H986.0v10H682.7Z" fill="#555555"><title>update</title></path>)"));
  EXPECT_FALSE(has(svg, ">backward</text>"));
  EXPECT_TRUE(has(svg, ">Allocated: 4.0 KiB of states and 4.0 KiB for all else. "));
  EXPECT_TRUE(has(svg, "At most 3.0 KiB are live at once, placed in 4.0 KiB: 33.33% more.</text>"));
}

TEST(MemoryPicture, TheLimitOfARank) {
  const auto drawn = [](int64_t limit) { return memory_picture(made(2), "m", limit); };
  EXPECT_FALSE(has(drawn(0), "limit of a rank"));
  // The plan's 8 KiB take half of the height of 320 above the axis at 396.
  const std::string above = drawn(16 << 10);
  EXPECT_TRUE(well_formed(above));
  EXPECT_TRUE(has(above, R"(<path d="M76.0 76.0H986.0" stroke="#c0392b" stroke-dasharray="6 4"/>)")) << above;
  EXPECT_TRUE(has(above, R"(<path d="M76.0 236.0H986.0" stroke="#333333" stroke-dasharray="6 4"/>)"));
  EXPECT_TRUE(has(above, ">limit of a rank: 16.0 KiB</text>"));
  EXPECT_TRUE(has(above, ">15 KiB</text>"));
  // An exceeded limit is a line within the picture.
  EXPECT_TRUE(has(drawn(4 << 10), R"(<path d="M76.0 236.0H986.0" stroke="#c0392b" stroke-dasharray="6 4"/>)"));
  const std::string far = drawn(1 << 20);
  EXPECT_TRUE(has(far, ">limit of a rank: 1.0 MiB, far above</text>"));
  EXPECT_FALSE(has(far, R"(stroke="#c0392b")"));
}

TEST(MemoryPicture, OfALongListCallsAreSteps) {
  const std::string svg = memory_picture(made(3000), "long");
  EXPECT_TRUE(well_formed(svg));
  EXPECT_TRUE(has(svg, ">calls of a step, in order</text>"));
  EXPECT_TRUE(has(svg, ">3,000</text>"));
  EXPECT_LT(svg.size(), 200'000u);
}

TEST(MemoryPicture, OfAVeryLongListTheMostOfNeighbouringCalls) {
  const std::string svg = memory_picture(made(100'000), "longer");
  EXPECT_TRUE(well_formed(svg));
  EXPECT_LT(svg.size(), 400'000u);
}

}  // namespace
}  // namespace kintsugi::report::memory_picture_test
