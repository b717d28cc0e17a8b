// What a pipeline stage keeps between calls: a program that overwrites it is rejected, and the instruction and the
// message are named.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/verify.h"
#include "kintsugi/program/verify_ranks.h"
#include "kintsugi/program/walk.h"
#include "tests/layout_lists.h"

namespace kintsugi::tests::under_way_test {
namespace {

using program::BufferId;
using program::Call;
using program::Collective;
using program::Instruction;
using program::Program;

// On the first of two stages: forward of two micro-batches, then backward of the first.
class UnderWay : public testing::Test {
 protected:
  UnderWay() {
    config::Settings s = pipeline_model("gpt", "fp32");
    set_layout(s, "pipe=2 data=2");
    s.train.micro_batch = 1;
    stages = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  }

  Program& p() { return stages[0]; }
  program::CallList& list() { return p().lists[0]; }

  // The position of a call.
  size_t find(std::string_view body, int64_t micro_batch) {
    for (const auto& [position, call, b] : program::walk(p(), list()))
      if (b.name == body && call.micro_batch == micro_batch) return position;
    throw base::InternalError("test", "no call of {}, micro-batch {}", body, micro_batch);
  }
  std::vector<Instruction>& instructions(size_t call) {
    return p().bodies[static_cast<size_t>(list().calls[call].body)].instructions;
  }
  size_t start_of(size_t call, Collective collective) {
    for (size_t at = 0; at < instructions(call).size(); ++at)
      if (starts(instructions(call)[at], collective)) return at;
    throw base::InternalError("test", "no {} in call {}", name_of(collective), call);
  }
  size_t maker_of(size_t call, BufferId b) {
    for (size_t at = 0; at < instructions(call).size(); ++at)
      for (BufferId out : instructions(call)[at].outs)
        if (p().root(out) == p().root(b)) return at;
    throw base::InternalError("test", "no instruction of call {} makes #{}", call, b);
  }

  // Moves a buffer of one call to the place of a buffer of another call.
  void put(size_t call, BufferId b, size_t other, BufferId at) {
    std::vector<int64_t> begins = list().slots[static_cast<size_t>(list().calls[call].slot)];
    const int64_t place = p().offset(p().root(at), list(), list().calls[other].slot);
    begins[static_cast<size_t>(p().buffer(p().root(b)).segment)] = place - p().buffer(p().root(b)).offset;
    list().calls[call].slot = static_cast<int>(list().slots.size());
    list().slots.push_back(begins);
  }

  // "instruction 3 of forward, micro-batch 0 (gelu)"
  std::string place(size_t call, size_t at) {
    const Instruction& i = instructions(call)[at];
    return fmt::format("instruction {} of {} ({})", at, describe(p(), list().calls[call]),
                       is_collective(i) ? describe(p(), i, 0) : std::string(name_of(i)));
  }
  std::string refusal(size_t call, size_t at, const std::string& does, BufferId b, size_t other, size_t start,
                      const std::string& still) {
    return fmt::format("[verify] internal error: train: rank 0 at {} {} #{} \"{}\", which {} still {}", place(call, at),
                       does, b, p().buffer(b).name, place(other, start), still);
  }
  void expect_error(const std::string& text) {
    EXPECT_EQ(error_of([&] { program::verify(p()); }), text);
    EXPECT_EQ(error_of([&] { program::verify_ranks(stages); }), text);
  }

  std::vector<Program> stages;
};

TEST_F(UnderWay, APipelineLeavesItAlone) {
  expect_error("no error");
}

TEST_F(UnderWay, WhatIsSentIsNotWrittenByTheNextCall) {
  const size_t first = find("forward.0.first", 0), second = find("forward.0", 1);
  ASSERT_LT(second, find("forward.0.sent", 0));
  const size_t start = start_of(first, Collective::send);
  const BufferId sent = instructions(first)[start].ins[0];
  const size_t maker = maker_of(second, sent);
  put(second, sent, first, sent);
  expect_error(refusal(second, maker, "writes", instructions(second)[maker].outs[0], first, start, "reads"));
}

TEST_F(UnderWay, WhatIsReceivedIsNotWrittenByACallBefore) {
  const size_t receives = find("backward.0.receive", 0), between = find("forward.0", 1);
  ASSERT_LT(receives, between);
  ASSERT_LT(between, find("backward.0.first", 0));
  const BufferId received = instructions(receives)[0].outs[0];
  const BufferId sent = instructions(between)[start_of(between, Collective::send)].ins[0];
  const size_t maker = maker_of(between, sent);
  put(between, sent, receives, received);
  expect_error(refusal(between, maker, "writes", instructions(between)[maker].outs[0], receives, 0, "makes"));
}

TEST_F(UnderWay, WhatIsReceivedIsNotReadByTheBodyThatStartsIt) {
  const size_t receives = find("backward.0.receive", 0);
  const BufferId received = instructions(receives)[0].outs[0];
  instructions(receives).push_back({.kernel = "gelu", .ins = {received}, .outs = {received}});
  EXPECT_EQ(error_of([&] { program::verify(p()); }), refusal(receives, 1, "reads", received, receives, 0, "makes"));
}

}  // namespace
}  // namespace kintsugi::tests::under_way_test
