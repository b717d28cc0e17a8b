#include "kintsugi/lower/fuse/group_launches.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/program/verify.h"

namespace kintsugi::lower::group_launches_test {
namespace {

using kernels::KernelCall;

// Launches at most three of "own", after at most one of "maker"; declines groups whose first operands are not adjacent.
bool own_together(std::span<const KernelCall> calls) {
  const size_t own = static_cast<size_t>(
      std::count_if(calls.begin(), calls.end(), [](const KernelCall& c) { return c.kind == "own"; }));
  if (own > 3) return false;
  const std::span<const KernelCall> last = calls.last(own);
  for (size_t i = 1; i < own; ++i)
    if (last[i].ins[0].data != last[i - 1].ins[0].data + 256) return false;
  return true;
}

constexpr std::string_view kMakers[] = {"maker"};
constexpr kernels::Ability kFollows[] = {{kernels::Capability::follow, kMakers}};

class TwoKernels : public kernels::KernelSet {
 public:
  std::string_view name() const override { return "two"; }
  bool on_device() const override { return true; }
  const kernels::Kernel& find(std::string_view kind) const override { return kind == "own" ? own_ : maker_; }

 private:
  const tensor::OperandList x_ = {{"x"}}, y_ = {{"y"}};
  const kernels::Kernel own_ = {.kind = "own", .ins = x_, .outs = y_, .abilities = kFollows, .together = own_together};
  const kernels::Kernel maker_ = {.kind = "maker", .ins = x_, .outs = y_};
};

// A program of one body, in which buffer i is at 256 x i; `slots`: the number of calls of the body, each in its slot.
struct Body : Maker {
  Body() {
    p.on_device = true;
    body("update");
  }
  BufferId at(int place) {
    const BufferId b = arena(fmt::format("b{}", place), {{"flat", 64}});
    p.buffer(b).offset = 256 * place;
    return b;
  }
  std::string launches() {
    p.arena_bytes = 1 << 20;
    if (p.lists.empty()) p.lists.push_back({.step = program::Step::train, .calls = {{.body = 0}}});
    group_launches(p, TwoKernels());
    std::string text;
    for (const program::Instruction& i : p.bodies[0].instructions) text += fmt::format("{} ", i.launch);
    return text;
  }
};

}  // namespace

TEST(GroupLaunches, AsManyAsTheKernelPerforms) {
  Body b;
  for (int i = 0; i < 5; ++i) b.call("own", {b.at(i)}, {b.at(16 + i)});
  EXPECT_EQ(b.launches(), "3 0 0 2 0 ");
}

TEST(GroupLaunches, OnTheHostEachIsItsOwn) {
  Body b;
  b.p.on_device = false;
  for (int i = 0; i < 2; ++i) b.call("own", {b.at(i)}, {b.at(16 + i)});
  EXPECT_EQ(b.launches(), "1 1 ");
}

TEST(GroupLaunches, NotOneThatTouchesWhatAnotherWrites) {
  Body reads;
  const BufferId made = reads.at(1);
  reads.call("own", {reads.at(0)}, {made});
  reads.call("own", {made}, {reads.at(2)});
  EXPECT_EQ(reads.launches(), "1 1 ");

  Body overwrites;
  const BufferId x = overwrites.at(0);
  overwrites.call("own", {x}, {overwrites.at(8)});
  overwrites.call("own", {overwrites.at(1)}, {x});
  EXPECT_EQ(overwrites.launches(), "1 1 ");
}

TEST(GroupLaunches, BehindWhatMakesItsOperand) {
  Body b;
  const BufferId made = b.at(1);
  b.call("maker", {b.at(0)}, {made});
  b.call("own", {made}, {b.at(8)});
  EXPECT_EQ(b.launches(), "2 0 ");
}

TEST(GroupLaunches, NotIfWhatIsMadeIsReadElsewhere) {
  Body b;
  const BufferId made = b.at(1);
  b.call("maker", {b.at(0)}, {made});
  b.call("own", {made}, {b.at(8)});
  b.call("maker", {made}, {b.at(9)});
  EXPECT_EQ(b.launches(), "1 1 1 ");
}

// In the second slot the operands are in separate segments, where they are not adjacent.
TEST(GroupLaunches, OnlyIfItHoldsInEverySlot) {
  Body b;
  const BufferId first = b.at(0), second = b.at(1);
  b.call("own", {first}, {b.at(8)});
  b.call("own", {second}, {b.at(9)});
  b.p.buffer(first).segment = 0;
  b.p.buffer(second).segment = 1;
  const std::vector<std::vector<int64_t>> near = {{0, 0}}, far = {{0, 0}, {0, 4096}};
  b.p.lists.push_back({.step = program::Step::train, .calls = {{.body = 0}}, .slots = near});
  EXPECT_EQ(b.launches(), "2 0 ");
  for (program::Instruction& i : b.p.bodies[0].instructions) i.launch = 1;
  b.p.lists[0] = {.step = program::Step::train, .calls = {{.body = 0}, {.body = 0, .slot = 1}}, .slots = far};
  EXPECT_EQ(b.launches(), "1 1 ");
}

// Before memory is planned buffers are consecutive: these have 256 bytes each.
TEST(GroupLaunches, WithoutPlaces) {
  Body b;
  const BufferId first = b.arena("x0", {{"flat", 64}}), second = b.arena("x1", {{"flat", 64}});
  b.call("own", {first}, {b.arena("y0", {{"flat", 64}})});
  b.call("own", {second}, {b.arena("y1", {{"flat", 64}})});
  EXPECT_EQ(b.launches(), "2 0 ");
}

TEST(GroupLaunches, VerificationRefusesALaunchThatExceedsTheBody) {
  Body b;
  b.call("own", {b.at(0)}, {b.at(8)});
  b.p.bodies[0].instructions[0].launch = 2;
  EXPECT_THROW(program::verify(b.p), base::InternalError);
}

}  // namespace kintsugi::lower::group_launches_test
