// A valid program, and every way to break it, with the full error.
#include "kintsugi/program/verify.h"

#include <gtest/gtest.h>

#include <functional>

#include "kintsugi/base/error.h"
#include "kintsugi/program/print.h"

namespace kintsugi::program::verify_test {
namespace {

using tensor::DType;
using tensor::Shape;

// Buffers of 64 bytes: w (state), x (input), a, b (arena), space (a workspace).
Program whole() {
  const tensor::Type type = {{{"n", 16}}, DType::f32};
  Program p;
  p.buffers = {{.name = "w", .type = type, .region = Region::state, .offset = 0},
               {.name = "x", .type = type, .offset = 0, .input = "x"},
               {.name = "a", .type = type, .offset = 64},
               {.name = "b", .type = type, .offset = 128, .output = "b"},
               {.name = "space", .type = type, .offset = 192},
               {.name = "a2", .type = type, .same_as = 2}};
  p.states = {{.name = "w", .buffer = 0, .kind = program::StateKind::weight, .whole = type, .init = {}}};
  const auto call = [](std::string kernel, std::vector<BufferId> ins, std::vector<BufferId> outs,
                       BufferId workspace = kNoBuffer) {
    return Instruction{.kernel = std::move(kernel),
                       .ins = std::move(ins),
                       .outs = std::move(outs),
                       .attributes = {},
                       .workspace = workspace,
                       .phase = program::Phase::forward};
  };
  p.bodies = {{.name = "evaluate",
               .instructions = {call("add", {1, 0}, {2}, 4), call("gelu", {5}, {3}), call("scale", {2}, {0})}}};
  p.lists = {{.step = program::Step::evaluate, .calls = {{0, 0}, {0, 1}}}};
  p.state_bytes = 64;
  p.arena_bytes = 256;
  return p;
}

std::string error_after(const std::function<void(Program&)>& change) {
  Program p = whole();
  change(p);
  try {
    verify(p);
  } catch (const base::InternalError& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST(Verify, AWholeProgram) {
  EXPECT_EQ(error_after([](Program&) {}), "");
}

TEST(Verify, EveryWayToBreakIt) {
  const std::string verify = "[verify] internal error: ";
  EXPECT_EQ(error_after([](Program& p) { p.arena_bytes = 255; }),
            verify + "buffer \"space\" at arena+192 of 64 bytes is outside the 255 bytes of its region");
  EXPECT_EQ(error_after([](Program& p) { p.buffer(2).offset = 32; }),
            verify + "buffer \"a\" at arena+32 of 64 bytes is outside the 256 bytes of its region");
  EXPECT_EQ(error_after([](Program& p) { p.buffer(0).offset = -1; }),
            verify + "buffer \"w\" at state+-1 of 64 bytes is outside the 64 bytes of its region");
  EXPECT_EQ(error_after([](Program& p) { p.buffer(2).offset = -1; }), verify + "buffer #2 \"a\" has no place");
  EXPECT_EQ(error_after([](Program& p) { p.bodies[0].instructions[0].ins[0] = 3; }),
            verify + "evaluate: instruction 0 of evaluate (add) reads #3 \"b\", which is not there");
  EXPECT_EQ(error_after([](Program& p) { p.bodies[0].instructions[1].accumulate = 1; }),
            verify + "evaluate: instruction 1 of evaluate (gelu) adds to #3 \"b\", which is not there");
  EXPECT_EQ(error_after([](Program& p) { p.buffer(2).offset = 0; }),
            verify + "evaluate: instruction 0 of evaluate (add) overwrites its input #1 \"x\"");
  EXPECT_EQ(error_after([](Program& p) { p.buffer(4).offset = 64; }),
            verify + "evaluate: instruction 0 of evaluate (add): its workspace overlaps an output");
  EXPECT_EQ(error_after([](Program& p) {
              p.bodies[0].instructions[1].outs = {3, 4};
              p.buffer(4).offset = 128;
              p.bodies[0].instructions[0].workspace = kNoBuffer;
            }),
            verify + "evaluate: instruction 1 of evaluate (gelu): output 0 overlaps another");
  // a is still needed when b overwrites it.
  EXPECT_EQ(error_after([](Program& p) {
              p.buffer(3).offset = 64;
              p.bodies[0].instructions[1].ins = {0};
              p.bodies[0].instructions[1].outs = {3};
            }),
            verify + "evaluate: instruction 2 of evaluate (scale) reads #2 \"a\", which is not there");
  // The output is overwritten before the run reads it.
  EXPECT_EQ(error_after([](Program& p) {
              p.buffer(4).offset = 128;
              p.bodies[0].instructions[2].workspace = 4;
            }),
            verify + "evaluate: output \"b\" is overwritten");
}

// Buffers that two instructions write.
TEST(Verify, PartsOfABuffer) {
  const auto error = [](const std::function<void(std::vector<Instruction>&)>& change) {
    return error_after([&](Program& p) {
      // a = x (begins), b = a (begins), a = w (completes), b = a (completes)
      std::vector<Instruction>& list = p.bodies[0].instructions;
      const auto call = [](BufferId in, BufferId out) {
        return Instruction{.kernel = "scale", .ins = {in}, .outs = {out}, .attributes = {}};
      };
      list = {call(1, 2), call(2, 3), call(0, 2), call(2, 3)};
      list[0].begins = list[1].begins = 1;
      list[2].completes = list[3].completes = 1;
      p.lists[0].calls.resize(1);
      change(list);
    });
  };
  const std::string at = "[verify] internal error: evaluate: instruction ";
  EXPECT_EQ(error([](auto&) {}), "");
  EXPECT_EQ(error([](auto& list) { list[1].begins = 0; }),
            at + "1 of evaluate (scale) reads #2 \"a\", of which only a part is there");
  EXPECT_EQ(error([](auto& list) { std::swap(list[2], list[3]); }),
            at + "2 of evaluate (scale) reads #2 \"a\", of which only a part is there");
  EXPECT_EQ(error([](auto& list) { list[2].completes = 0; }),
            at + "2 of evaluate (scale) overwrites #2 \"a\", of which only a part is there");
  EXPECT_EQ(error([](auto& list) { list[0].begins = 0; }),
            at + "2 of evaluate (scale) completes #2 \"a\", of which no part is there");
  EXPECT_EQ(error([](auto& list) { list.pop_back(); }),
            "[verify] internal error: evaluate: only a part of a buffer is written");
}

// Values of a micro-batch are not available to the next list.
TEST(Verify, AListBeginsWithNothingButStates) {
  Program p = whole();
  p.bodies.push_back({.name = "decode", .instructions = {p.bodies[0].instructions[1]}});
  p.lists.push_back({.step = program::Step::decode, .calls = {{1, 0}}});
  try {
    verify(p);
    FAIL();
  } catch (const base::InternalError& e) {
    EXPECT_STREQ(e.what(),
                 "[verify] internal error: decode: instruction 0 of decode (gelu) reads #5 \"a2\", which is not there");
  }
}

TEST(Program, IsPrinted) {
  Program p = whole();
  p.bodies[0].instructions[0].cost.flops = 16;
  p.bodies[0].instructions[0].cost.memory_bytes = 192;
  p.bodies[0].instructions[1].accumulate = 1;
  p.bodies[0].instructions[1].attributes = {{"form", "tanh"}};
  EXPECT_EQ(print(p),
            "buffers\n"
            "  #0 w[n:16] fp32 at state+0, 64 bytes\n"
            "  #1 x[n:16] fp32 at arena+0, 64 bytes, input x\n"
            "  #2 a[n:16] fp32 at arena+64, 64 bytes\n"
            "  #3 b[n:16] fp32 at arena+128, 64 bytes\n"
            "  #4 space[n:16] fp32 at arena+192, 64 bytes\n"
            "  #5 a2[n:16] fp32 is #2\n"
            "body evaluate\n"
            "     0 #2 a[n:16] fp32 = add(#1, #0)  workspace #4   16 flops, 192 bytes\n"
            "     1 +#3 b[n:16] fp32 = gelu(#5)  form=tanh   0 flops, 0 bytes\n"
            "     2 #0 w[n:16] fp32 = scale(#2)   0 flops, 0 bytes\n"
            "calls evaluate\n"
            "  evaluate micro-batch 0\n"
            "  evaluate micro-batch 1\n"
            "memory\n"
            "  weight                                 64 bytes\n"
            "  states, aligned                        64 bytes\n"
            "  arena of evaluate                       0 bytes, lower bound 0\n"
            "  peak                                  320 bytes (320 B)\n"
            "work\n"
            "  evaluate                 32 flops\n");
  EXPECT_EQ(p.root(5), 2);
  EXPECT_EQ(p.bytes(), 320);
  EXPECT_EQ(p.state("v"), nullptr);
}

}  // namespace kintsugi::program::verify_test
