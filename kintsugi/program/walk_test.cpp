// Properties of the order of calls, for a list with two micro-batches in flight.
#include "kintsugi/program/walk.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace kintsugi::program::walk_test {
namespace {

Instruction kernel(std::vector<BufferId> ins, std::vector<BufferId> outs) {
  return {.kernel = "add", .ins = std::move(ins), .outs = std::move(outs)};
}

// Forward reads tokens and positions, backward tokens and labels, the update no input.
Program sample() {
  const tensor::Type type = {{{"n", 16}}, tensor::DType::f32};
  Program p;
  for (const char* name : {"tokens", "labels", "positions"})
    p.buffers.push_back({.name = name, .type = type, .input = name});
  p.buffers.push_back({.name = "view", .type = type, .same_as = 0});
  p.buffers.push_back({.name = "x", .type = type});
  p.bodies = {{.name = "update", .instructions = {kernel({4}, {4})}, .work = Work::update},
              {.name = "forward", .instructions = {kernel({3, 2}, {4}), kernel({0, 4}, {4})}},
              {.name = "backward", .instructions = {kernel({0, 1}, {4})}, .work = Work::backward},
              {.name = "evaluate", .instructions = {}, .work = Work::evaluate}};
  p.lists = {{.step = Step::train, .calls = {{1, 0}, {1, 1}, {2, 0}, {1, 2}, {2, 1}, {2, 2}, {0, -1}}},
             {.step = Step::decode, .calls = {{0, 0}, {0, -1}, {0, 0}, {0, 1}}}};
  return p;
}

TEST(Walk, CallsComeInTheirOrderWithTheirBodies) {
  const Program p = sample();
  std::string calls, instructions;
  for (const auto& [position, call, body] : walk(p, p.lists[0]))
    calls += fmt::format("{} {} {}\n", position, body.name, call.micro_batch);
  EXPECT_EQ(calls, "0 forward 0\n1 forward 1\n2 backward 0\n3 forward 2\n4 backward 1\n5 backward 2\n6 update -1\n");
  for_each_instruction(p, p.lists[0], [&](const VisitedCall& call, size_t at, const Instruction& i) {
    EXPECT_EQ(&i, &call.body.instructions[at]);
    instructions += fmt::format("{}.{} ", call.position, at);
  });
  EXPECT_EQ(instructions, "0.0 0.1 1.0 1.1 2.0 3.0 3.1 4.0 5.0 6.0 ");
  EXPECT_EQ(num_instructions(p, p.lists[0]), 10u);
}

TEST(Walk, BodiesAreFoundByTheirFirstCall) {
  const Program p = sample();
  std::string first;
  for (const auto& [position, call, body] : first_calls(p, p.lists[0]))
    first += fmt::format("{} {}\n", position, body.name);
  EXPECT_EQ(first, "0 forward\n2 backward\n6 update\n");
  EXPECT_EQ(num_calls(p, p.lists[0]), (std::vector<int64_t>{1, 3, 3, 0}));
}

TEST(Walk, TheLastMicroBatch) {
  const Program p = sample();
  EXPECT_EQ(last_micro_batch(p.lists[0]), 2);
  EXPECT_EQ(last_micro_batch({.step = Step::train, .calls = {{0, -1}}}), 0);
  EXPECT_EQ(last_micro_batch({.step = Step::train, .calls = {}}), 0);
}

TEST(Walk, AnEventIsOfItsMicroBatch) {
  const Instruction i = {.event = 4};
  EXPECT_EQ(key_of(i, {.body = 0, .micro_batch = 2}), (EventKey{4, 2}));
  EXPECT_LT(key_of(i, {.body = 1, .micro_batch = -1}), key_of(i, {.body = 0, .micro_batch = 2}));
}

TEST(Walk, InputsAreFilledBeforeTheCallThatReadsThemFirst) {
  const Program p = sample();
  using Inputs = std::vector<std::vector<BufferId>>;
  EXPECT_EQ(first_inputs(p, p.lists[0]), (Inputs{{0, 2}, {0, 2}, {1}, {0, 2}, {1}, {1}, {}}));
  EXPECT_EQ(fills(p, p.lists[0]), (std::vector<bool>{true, true, true, true, true, true, false}));
  // Without inputs a micro-batch starts with its first call; calls of the step start none.
  EXPECT_EQ(first_inputs(p, p.lists[1]), (Inputs{{}, {}, {}, {}}));
  EXPECT_EQ(fills(p, p.lists[1]), (std::vector<bool>{true, false, false, true}));
}

}  // namespace
}  // namespace kintsugi::program::walk_test
