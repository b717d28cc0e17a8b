#include "kintsugi/lower/order/place_waits.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/order/route.h"
#include "kintsugi/lower/pass_test.h"
#include "kintsugi/program/print.h"

namespace kintsugi::lower::place_waits_test {
namespace {

using program::Collective;
using program::Instruction;
using program::Position;

// A program of one body on four ranks, in which buffer i is at 256 x i.
struct Body : Maker {
  Body() {
    p.on_device = true;
    p.mesh = mesh::Mesh({{"data", 2}, {"tensor", 2}});
    p.arena_bytes = 1 << 20;
    body("update");
  }
  BufferId at(int place) {
    const BufferId b = arena(fmt::format("b{}", place), {{"flat", 64}});
    p.buffer(b).offset = 256 * place;
    return b;
  }
  // Starts event `event`.
  Instruction start(int event, BufferId in, BufferId out, const char* axis = "data") {
    Instruction& i = collective(Collective::all_reduce, {in}, {out});
    i.event = event;
    const std::string axes[] = {axis};
    i.group = p.mesh.expand(axes);
    return i;
  }
  void wait(const Instruction& started) { add(program::wait_for(started)); }

  // "wait 1 before 3" and "start 2 unordered" of the first call, after the passes.
  std::string placed(const Route& how = {}) {
    if (p.lists.empty()) p.lists.push_back({.step = program::Step::train, .calls = {{.body = 0}}});
    route(p, how);
    place_waits(p);
    program::verify_order(p);
    std::string text;
    const auto place = [&](const Position& x) {
      if (x.call == std::ssize(p.lists[0].calls)) return std::string("end");
      return x.instruction < 0 ? fmt::format("inputs{}", x.call)
                               : fmt::format("{}{}", x.call == 0 ? "" : fmt::format("{}.", x.call), x.instruction);
    };
    for (const program::PlacedWait& w : p.lists[0].order.waits)
      text += fmt::format("wait {} before {}\n", place(w.wait), place(w.before));
    for (const Position& start : p.lists[0].order.unordered) text += fmt::format("start {} unordered\n", place(start));
    return text;
  }
  std::string error() {
    try {
      program::verify_order(p);
    } catch (const base::InternalError& e) {
      return e.what();
    }
    return "";
  }
};

}  // namespace

TEST(PlaceWaits, BeforeTheFirstInstructionThatTouchesTheMemory) {
  Body b;
  const BufferId x = b.at(0), sum = b.at(1);
  b.wait(b.start(0, x, sum));
  b.call("gelu", {b.at(2)}, {b.at(3)});
  b.call("gelu", {x}, {b.at(4)});  // both only read x
  b.call("gelu", {sum}, {b.at(5)});
  EXPECT_EQ(b.placed(), "wait 1 before 4\n");
}

TEST(PlaceWaits, BeforeWhatOverwritesAnOperand) {
  Body b;
  const BufferId x = b.at(0);
  b.wait(b.start(0, x, b.at(1)));
  b.call("gelu", {b.at(2)}, {x});
  EXPECT_EQ(b.placed(), "wait 1 before 2\n");
}

TEST(PlaceWaits, AtTheEndWithTheNewestFirst) {
  Body b;
  const Instruction first = b.start(0, b.at(0), b.at(1)), second = b.start(1, b.at(2), b.at(3), "tensor");
  b.wait(first);
  b.wait(second);
  EXPECT_EQ(b.placed(), "wait 3 before end\nwait 2 before end\n");
}

// A queue executes its transfers in order, so another wait is redundant.
TEST(PlaceWaits, BeforeATransferOfAnotherQueueAlone) {
  Body b;
  const BufferId sum = b.at(1), more = b.at(2);
  const Instruction first = b.start(0, b.at(0), sum);
  b.wait(first);
  b.wait(b.start(1, sum, more));
  b.wait(b.start(2, more, b.at(3), "tensor"));
  EXPECT_EQ(b.placed(), "wait 3 before 4\nwait 5 before end\nwait 1 before end\nstart 2 unordered\n");
}

TEST(PlaceWaits, BeforeTheLaunchOfAGroup) {
  Body b;
  const BufferId sum = b.at(1);
  b.wait(b.start(0, b.at(0), sum));
  b.call("gelu", {b.at(2)}, {b.at(3)}).launch = 2;
  b.call("gelu", {sum}, {b.at(4)}).launch = 0;
  EXPECT_EQ(b.placed(), "wait 1 before 2\n");
}

TEST(PlaceWaits, InALaterCallAndBeforeItsInputs) {
  Body b;
  const BufferId sum = b.at(1), tokens = b.at(2);
  b.wait(b.start(0, b.at(0), sum));
  b.body("forward");
  b.call("gelu", {tokens}, {b.at(3)});
  b.call("gelu", {sum}, {b.at(4)});
  b.p.lists.push_back({.step = program::Step::train, .calls = {{.body = 0}, {.body = 1}}});
  EXPECT_EQ(b.placed(), "wait 1 before 1.1\n");
  b.p.buffer(tokens).input = "tokens";
  EXPECT_EQ(b.placed(), "wait 1 before inputs1\n");
}

TEST(PlaceWaits, ATransferThatTouchesNothingNewIsUnordered) {
  Body b;
  const BufferId x = b.at(0), y = b.at(1);
  b.wait(b.start(0, x, b.at(2)));
  b.call("gelu", {b.at(3)}, {b.at(4)});
  b.wait(b.start(1, x, b.at(5)));
  b.call("gelu", {b.at(3)}, {y});
  b.wait(b.start(2, y, b.at(6)));
  EXPECT_EQ(b.placed(), "wait 7 before end\nwait 4 before end\nwait 1 before end\nstart 3 unordered\n");
}

TEST(PlaceWaits, ThroughTheHostEachIsWhereItsInstructionIs) {
  Body b;
  b.wait(b.start(0, b.at(0), b.at(1)));
  b.call("gelu", {b.at(2)}, {b.at(3)});
  EXPECT_EQ(b.placed({.exchange = program::Exchange::through_host}), "wait 1 before 1\n");
  EXPECT_FALSE(b.p.lists[0].order.captured);
  EXPECT_NE(program::print(b.p).find("order train\n  exchange through the host, not captured\n"), std::string::npos);
  EXPECT_EQ(b.placed(), "wait 1 before end\n");
  EXPECT_TRUE(b.p.lists[0].order.captured);
  EXPECT_NE(
      program::print(b.p).find("order train\n  exchange in streams, captured\n  wait 1 of call 0 before the end\n"),
      std::string::npos);
}

TEST(PlaceWaits, NothingForTheHost) {
  Body b;
  b.p.on_device = false;
  b.wait(b.start(0, b.at(0), b.at(1)));
  EXPECT_EQ(b.placed(), "");
}

TEST(VerifyOrder, EveryWayToBreakIt) {
  const auto made = [] {
    Body b;
    const BufferId x = b.at(0), sum = b.at(1);
    b.wait(b.start(0, x, sum));
    b.call("gelu", {b.at(2)}, {x});
    b.wait(b.start(1, x, b.at(3)));
    b.placed();
    return b;
  };
  const std::string verify = "[verify] internal error: train: ";
  Body b = made();
  EXPECT_EQ(b.error(), "");
  b.p.lists[0].order.waits[0].before.instruction = 3;
  EXPECT_EQ(b.error(), verify + "instruction 2 of call 0 touches the memory of event 0, which is awaited later");
  b = made();
  b.p.lists[0].order.waits[0].before.instruction = 0;
  EXPECT_EQ(b.error(), verify + "instruction 1 of call 0 is awaited before instruction 0 of call 0");
  b = made();
  b.p.lists[0].order.waits.pop_back();
  EXPECT_EQ(b.error(), verify + "2 waits have 1 places, and 1 transfers are not awaited");
  b = made();
  std::swap(b.p.lists[0].order.waits[0], b.p.lists[0].order.waits[1]);
  EXPECT_NE(b.error(), "");
  b = made();
  b.p.lists[0].order.unordered = {{0, 3}};
  EXPECT_EQ(b.error(), verify + "all_reduce at instruction 3 of call 0 does not wait for what it touches");
}

}  // namespace kintsugi::lower::place_waits_test
