// Small programs for which one placement is smaller than the two others, and their complete plans.
#include <gtest/gtest.h>

#include "kintsugi/lower/memory/slots_example.h"

namespace kintsugi::lower::slots_examples_test {
namespace {

using program::Program;

// Carried: a from forward to backward, b from forward and c from backward to weight. Temporaries: t, u, v of these
// bodies.
Program split_backward_of(const std::vector<int64_t>& units, int stages, int64_t micro_batches) {
  Example m;
  const BufferId a = m.make("a", units[0]), b = m.make("b", units[1]), c = m.make("c", units[2]),
                 t = m.make("t", units[3]), u = m.make("u", units[4]), v = m.make("v", units[5]);
  m.body("forward");
  m.call("contract", {m.w}, {t});
  m.call("contract", {t}, {a});
  m.call("contract", {a}, {b});
  m.body("backward");
  m.call("contract", {a}, {u});
  m.call("contract", {u}, {c});
  m.body("weight");
  m.call("contract", {b, c}, {v});
  m.call("accumulate", {v}, {m.g}, 0, 1);
  m.update();
  m.plan("zero_bubble", stages, 1, micro_batches);
  return m.p;
}

// Carried: x from the first chunk's forward to the second's, y back; a and b from the forward of each to its backward.
// Temporaries: t0, t2 of the forwards, u2, u0 of the backwards.
Program two_chunks_of(const std::vector<int64_t>& units, int64_t micro_batches) {
  Example m;
  const BufferId a = m.make("a", units[0]), b = m.make("b", units[1]), x = m.make("x", units[2]),
                 y = m.make("y", units[3]), t0 = m.make("t0", units[4]), t2 = m.make("t2", units[5]),
                 u2 = m.make("u2", units[6]), u0 = m.make("u0", units[7]);
  m.body_of("forward", 0);
  m.call("contract", {m.w}, {t0});
  m.call("contract", {t0}, {a});
  m.call("contract", {a}, {x});
  m.body_of("forward", 2);
  m.call("contract", {x}, {t2});
  m.call("contract", {t2}, {b});
  m.body_of("backward", 2);
  m.call("contract", {b}, {u2});
  m.call("contract", {u2}, {y});
  m.body_of("backward", 0);
  m.call("contract", {a, y}, {u0});
  m.call("accumulate", {u0}, {m.g}, 0, 1);
  m.update();
  m.plan("interleaved", 2, 2, micro_batches);
  return m.p;
}

// The first chunk has layers 0 and 1, the second layer 2: each carries a value of the same size to its backward pass.
Program uneven_chunks_of(int64_t units, int64_t message, int64_t temporary, int stages, int64_t micro_batches) {
  Example m;
  const BufferId a0 = m.make("a0", units), a1 = m.make("a1", units), a2 = m.make("a2", units), x = m.make("x", message),
                 y = m.make("y", message), t = m.make("t", temporary);
  m.body_of("forward", 0);
  m.call("contract", {m.w}, {a0}, 0);
  m.call("contract", {a0}, {a1}, 1);
  m.call("contract", {a1}, {x}, 1);
  m.body_of("forward", stages);
  m.call("contract", {x}, {a2}, 2);
  m.body_of("backward", stages);
  m.call("contract", {a2}, {y}, 2);
  m.body_of("backward", 0);
  m.call("contract", {a0, a1, y}, {t}, 1);
  m.call("accumulate", {t}, {m.g}, 0, 1);
  m.update();
  m.plan("interleaved", stages, 2, micro_batches);
  return m.p;
}

}  // namespace

// t, u and v are at 256 in all calls, between carried values.
TEST(SlotsExamples, PackedIsTheSmallest) {
  const Program p = split_backward_of({2, 1, 1, 1, 1, 2}, 3, 2);
  EXPECT_EQ(choice(p), "packed with 24 ticks by layer: stacked 512, packed 448, beside 512");
  EXPECT_EQ(planned(p),
            "a:0+0 b:1+0 c:2+0 t:3+0 u:4+0 v:5+0\n"
            "forward.first(0) 320 192 - 256 - -\n"
            "forward(1) 64 0 - 256 - -\n"
            "backward.first(0) 320 - 384 - 256 -\n"
            "weight.first(0) - 192 384 - - 256\n"
            "backward(1) 64 - 64 - 256 -\n"
            "weight(1) - 0 64 - - 256\n"
            "update(-1) - - - - - -\n"
            "448 bytes, at least 448\n");
}

// t is at 384 above carried values, and at 0, 256 and 128 in other calls.
TEST(SlotsExamples, BesideIsTheSmallest) {
  const Program p = split_backward_of({1, 1, 5, 4, 1, 3}, 3, 5);
  EXPECT_EQ(choice(p), "beside with 24 ticks by layer: stacked 896, packed 896, beside 832");
  EXPECT_EQ(planned(p),
            "a:0+0 b:1+0 c:2+0 t:3+0 u:4+0 v:5+0\n"
            "forward.first(0) 320 256 - 0 - -\n"
            "forward(1) 192 128 - 384 - -\n"
            "forward(2) 64 0 - 384 - -\n"
            "backward.first(0) 320 - 320 - 640 -\n"
            "weight.first(0) - 256 320 - - 640\n"
            "forward(3) 576 512 - 256 - -\n"
            "backward(1) 192 - 192 - 640 -\n"
            "weight(1) - 128 192 - - 640\n"
            "forward(4) 448 384 - 128 - -\n"
            "backward(2) 64 - 64 - 640 -\n"
            "weight(2) - 0 64 - - 640\n"
            "backward(3) 576 - 0 - 320 -\n"
            "weight(3) - 512 0 - - 576\n"
            "backward(4) 448 - 0 - 320 -\n"
            "weight(4) - 384 0 - - 448\n"
            "update(-1) - - - - - -\n"
            "832 bytes, at least 832\n");
}

// The instances of b, the largest, alternate between 0 and 320.
TEST(SlotsExamples, StackedIsTheSmallest) {
  const Program p = two_chunks_of({1, 5, 1, 1, 4, 2, 2, 1}, 4);
  EXPECT_EQ(choice(p), "stacked with 1 ticks: stacked 1152, packed 1216, beside 1216");
  EXPECT_EQ(planned(p),
            "a:0+0 b:1+0 x:2+0 y:3+0 t0:4+0 t2:5+0 u2:6+0 u0:7+0\n"
            "forward.0.first(0) 640 - 320 - 0 - - -\n"
            "forward.0(1) 704 - 768 - 0 - - -\n"
            "forward.2.first(0) - 0 320 - - 384 - -\n"
            "forward.2(1) - 320 768 - - 832 - -\n"
            "forward.0(2) 768 - 832 - 896 - - -\n"
            "backward.2.first(0) - 0 - 896 - - 960 -\n"
            "forward.0(3) 960 - 1024 - 0 - - -\n"
            "backward.2(1) - 320 - 1088 - - 0 -\n"
            "forward.2(2) - 0 832 - - 320 - -\n"
            "backward.0.first(0) 640 - - 896 - - - 320\n"
            "forward.2(3) - 320 1024 - - 832 - -\n"
            "backward.0(1) 704 - - 1088 - - - 640\n"
            "backward.2(2) - 0 - 640 - - 832 -\n"
            "backward.2(3) - 320 - 0 - - 64 -\n"
            "backward.0(2) 768 - - 640 - - - 64\n"
            "backward.0(3) 960 - - 0 - - - 64\n"
            "update(-1) - - - - - - - -\n"
            "1152 bytes, at least 1088\n");
}

// Chunks of two layers and of one leave gaps between each other, their layers none.
TEST(SlotsExamples, ByLayerIsTheSmallest) {
  const Program p = uneven_chunks_of(4, 1, 1, 3, 12);
  EXPECT_EQ(choice(p), "stacked with 1 ticks by layer: stacked 3904, packed 3904, beside 3904");
  EXPECT_EQ(p.lists[0].lower_bound_bytes, 3904);
  EXPECT_EQ(p.lists[0].arena_bytes, 3904);
  program::verify(p);
  const ListLiveness liveness = liveness_of(p, p.lists[0]);
  EXPECT_EQ(place(demand_of(liveness, make_segments(p, liveness, {.ticks = 1}))).bytes, 4096);
}

}  // namespace kintsugi::lower::slots_examples_test
