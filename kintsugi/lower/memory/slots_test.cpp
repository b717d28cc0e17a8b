#include "kintsugi/lower/memory/slots.h"

#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <random>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/memory/slots_example.h"

namespace kintsugi::lower::slots_test {
namespace {

using program::Program;

Shape bytes(int64_t n) {
  return {{"n", n / 4}};
}

std::string error_of(const Program& p) {
  try {
    program::verify(p);
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "no error";
}

// Forward produces values that backward consumes in reverse order, each with a temporary; a layer has two.
Program stack(const std::vector<int64_t>& kept, const std::vector<int64_t>& temporaries, std::string_view schedule,
              int64_t micro_batches) {
  Maker m;
  const BufferId w = m.state("w", bytes(64)), g = m.state("g", bytes(64), program::StateKind::gradient);
  std::vector<BufferId> values;
  const auto layer = [](size_t i) { return static_cast<int>(i) / 2; };
  m.body("forward");
  for (size_t i = 0; i < kept.size(); ++i) {
    const BufferId t = m.arena("t", bytes(temporaries[i])), value = m.arena("kept" + std::to_string(i), bytes(kept[i]));
    m.call("contract", {i == 0 ? w : values.back()}, {t}, layer(i));
    m.call("contract", {t}, {value}, layer(i));
    values.push_back(value);
  }
  m.body("backward");
  BufferId d = w;
  for (size_t i = kept.size(); i-- > 0;) {
    const BufferId t = m.arena("t", bytes(temporaries[i])), next = m.arena("d", bytes(kept[i]));
    m.call("contract", {d, values[i]}, {t}, layer(i));
    m.call("contract", {t}, {next}, layer(i));
    d = next;
  }
  m.call("accumulate", {d}, {g}, 0, 1);
  m.body("update");
  m.call("accumulate", {g}, {w});
  lower::schedule(m.p, plan::make_schedule(schedule, 1, 1, micro_batches));
  plan_memory(m.p, ops::operations());
  return m.p;
}

}  // namespace

TEST(Slots, AMicroBatchAtATimeNeedsNone) {
  const Program p = stack({4096, 4096}, {1024, 1024}, "1f1b", 4);
  for (const program::Buffer& b : p.buffers) EXPECT_EQ(b.segment, -1);
  EXPECT_EQ(p.lists[0].slots.size(), 1u);
}

// GPipe has all micro-batches in flight: kept values exist for each, and the temporaries of a call once.
TEST(Slots, AsManyAsAreUnderWay) {
  for (int64_t m : {2, 3, 8}) {
    const Program p = stack({4096, 8192, 4096}, {1024, 1024, 1024}, "gpipe", m);
    EXPECT_EQ(error_of(p), "no error");
    EXPECT_GE(p.lists[0].slots.size(), static_cast<size_t>(m));
    EXPECT_EQ(p.lists[0].lower_bound_bytes, m * 16384 + 1024) << m;
    EXPECT_GE(p.lists[0].arena_bytes, p.lists[0].lower_bound_bytes);
    EXPECT_LE(p.lists[0].arena_bytes, m * 16384 + 1024 + 8192) << m;
  }
}

// Whatever is kept and needed, no value is overwritten before its last use.
TEST(Slots, RandomStacksAreWhole) {
  std::mt19937_64 random(5);
  const auto size = [&] { return 64 * static_cast<int64_t>(1 + random() % 64); };
  for (int i = 0; i < 200; ++i) {
    std::vector<int64_t> kept, temporaries;
    for (uint64_t n = 1 + random() % 9; n > 0; --n) {
      kept.push_back(size());
      temporaries.push_back(size());
    }
    const Program p = stack(kept, temporaries, i % 2 ? "gpipe" : "zero_bubble", 2 + static_cast<int64_t>(random() % 5));
    ASSERT_EQ(error_of(p), "no error") << i;
    ASSERT_GE(p.lists[0].arena_bytes, p.lists[0].lower_bound_bytes) << i;
  }
}

TEST(Slots, ASlotOfAnotherIsRefused) {
  Program p = stack({4096, 8192, 4096}, {1024, 1024, 1024}, "gpipe", 3);
  // The second micro-batch's forward writes where the first one's values are kept.
  std::vector<program::Call>& calls = p.lists[0].calls;
  ASSERT_EQ(calls[1].micro_batch, 1);
  ASSERT_NE(calls[0].slot, calls[1].slot);
  calls[1].slot = calls[0].slot;
  EXPECT_EQ(error_of(p).substr(0, 65), "[verify] internal error: train: instruction 0 of backward.first (");
}

// Until forward writes b, and after backward has read it, its bytes are a hole of the segment: for t and v.
TEST(Slots, HolesOfTheSegmentThatBeginsAndEnds) {
  Example m;
  const BufferId a = m.make("a", 1), b = m.make("b", 2), t = m.make("t", 2), u = m.make("u", 1), v = m.make("v", 2);
  m.body("forward");
  m.call("contract", {m.w}, {t});
  m.call("contract", {t}, {a});
  m.call("contract", {a}, {b});
  m.body("backward");
  m.call("contract", {b}, {u});
  m.call("contract", {u, a}, {v});
  m.call("accumulate", {v}, {m.g}, 0, 1);
  m.update();
  m.plan("gpipe", 1, 1, 2);
  EXPECT_EQ(in_holes(m.p), (std::vector<std::string>{"t", "v"}));
  EXPECT_EQ(choice(m.p), "stacked with 1 ticks: stacked 448, packed 448, beside 448");
  EXPECT_EQ(planned(m.p),
            "a:0+0 b:0+64 t:0+64 u:1+0 v:0+64\n"
            "forward.first(0) 0 -\n"
            "forward(1) 192 -\n"
            "backward.first(0) 0 384\n"
            "backward(1) 192 0\n"
            "update(-1) - -\n"
            "448 bytes, at least 448\n");
}

// The hole has two units; t has three, and gets a separate segment.
TEST(Slots, WhatIsLargerThanAHole) {
  Example m;
  const BufferId a = m.make("a", 1), b = m.make("b", 2), t = m.make("t", 3), u = m.make("u", 1);
  m.body("forward");
  m.call("contract", {m.w}, {t});
  m.call("contract", {t}, {a});
  m.call("contract", {a}, {b});
  m.body("backward");
  m.call("contract", {a, b}, {u});
  m.call("accumulate", {u}, {m.g}, 0, 1);
  m.update();
  m.plan("gpipe", 1, 1, 2);
  EXPECT_EQ(in_holes(m.p), (std::vector<std::string>{}));
  EXPECT_EQ(planned(m.p),
            "a:0+0 b:0+64 t:1+0 u:2+0\n"
            "forward.first(0) 0 192 -\n"
            "forward(1) 192 384 -\n"
            "backward.first(0) 0 - 384\n"
            "backward(1) 192 - 0\n"
            "update(-1) - - -\n"
            "576 bytes, at least 448\n");
}

// A send is awaited in a separate call, before or after the call that uses the value again: that call's output does not
// take its memory. Without the message it does.
TEST(Slots, WhatIsSentIsNotWrittenInPlace) {
  for (bool sends : {false, true}) {
    Example m;
    const BufferId x = m.make("x", 1), y = m.make("y", 1);
    m.p.mesh = mesh::Mesh({{.name = "pipe", .size = 2, .cuts_layers = true}});
    m.body("forward");
    m.call("contract", {m.w}, {x});
    if (sends) {
      program::Instruction& send = m.collective(program::Collective::send, {x}, {});
      send.group = {0};
      send.peer = 1;
      send.channel = "forward.1 from 0";
    }
    m.body("backward");
    m.call("gelu", {x}, {y});
    m.call("accumulate", {y}, {m.g}, 0, 1);
    m.update();
    m.plan("gpipe", 1, 1, 2);
    EXPECT_EQ(planned(m.p), sends ? "x:0+0 y:1+0\n"
                                    "forward.first(0) 0 -\n"
                                    "forward(1) 64 -\n"
                                    "forward.sent(0) 0 -\n"
                                    "backward.first(0) 0 128\n"
                                    "forward.sent(1) 64 -\n"
                                    "backward(1) 64 0\n"
                                    "update(-1) - -\n"
                                    "192 bytes, at least 192\n"
                                  : "x:0+0 y=x\n"
                                    "forward.first(0) 0\n"
                                    "forward(1) 64\n"
                                    "backward.first(0) 0\n"
                                    "backward(1) 64\n"
                                    "update(-1) -\n"
                                    "128 bytes, at least 128\n");
  }
}

// The run reads an output after the last call: nothing later takes its bytes, nor its memory in place.
TEST(Slots, AnOutputStays) {
  for (bool output : {false, true}) {
    Example m;
    const BufferId a = m.make("a", 1), n = m.make("n", 1), q = m.make("q", 1), r = m.make("r", 1), s = m.make("s", 1);
    m.body("forward");
    m.call("contract", {m.w}, {a});
    m.body("backward");
    m.call("accumulate", {a}, {m.g}, 0, 1);
    m.body("update");
    m.call("contract", {m.g}, {n});
    m.call("gelu", {n}, {q});
    m.call("contract", {q}, {r});
    m.call("contract", {r}, {s});
    m.call("accumulate", {s}, {m.w});
    if (output) m.p.buffer(n).output = "norm";
    m.plan("gpipe", 1, 1, 2);
    EXPECT_EQ(planned(m.p), output ? "a:0+0 n:1+0 q:1+64 r:1+128 s:1+64\n"
                                     "forward.first(0) 0 -\n"
                                     "forward(1) 64 -\n"
                                     "backward.first(0) 0 -\n"
                                     "backward(1) 64 -\n"
                                     "update(-1) - 0\n"
                                     "192 bytes, at least 192\n"
                                   : "a:0+0 n:1+0 q=n r:1+64 s:1+0\n"
                                     "forward.first(0) 0 -\n"
                                     "forward(1) 64 -\n"
                                     "backward.first(0) 0 -\n"
                                     "backward(1) 64 -\n"
                                     "update(-1) - 0\n"
                                     "128 bytes, at least 128\n");
  }
}

// What the last micro-batch leaves for the step exists once, from that call on.
TEST(Slots, WhatTheStepTakesFromTheLastMicroBatch) {
  Example m;
  const BufferId a = m.make("a", 1), r = m.make("r", 1);
  m.body("forward");
  m.call("contract", {m.w}, {a});
  m.body("backward");
  m.call("contract", {a}, {m.g}, 0, 1);
  m.body("reduce");
  m.call("contract", {m.g}, {r});
  m.body("update");
  m.call("contract", {r}, {m.w});
  m.plan("gpipe", 1, 1, 3);
  EXPECT_EQ(planned(m.p),
            "a:0+0 r:1+0\n"
            "forward.first(0) 0 -\n"
            "forward(1) 64 -\n"
            "forward(2) 128 -\n"
            "backward.first(0) 0 -\n"
            "backward(1) 64 -\n"
            "backward.last(2) 128 0\n"
            "update(-1) - 0\n"
            "192 bytes, at least 192\n");
}

}  // namespace kintsugi::lower::slots_test
