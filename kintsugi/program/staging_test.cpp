#include "kintsugi/program/staging.h"

#include <gtest/gtest.h>

namespace kintsugi::program::staging_test {
namespace {

// Two bodies that share an input, and the second has another; three scalars each.
Program made() {
  Program p;
  p.on_device = true;
  for (const char* name : {"tokens", "labels", "y"})
    p.buffers.push_back(
        {.name = name, .type = {{{"samples", 3}}, tensor::DType::i32}, .input = std::string(name) == "y" ? "" : name});
  const auto body = [](std::vector<BufferId> ins) {
    Instruction i;
    i.ins = std::move(ins);
    i.outs = {2};
    Body b;
    b.instructions = {i};
    return b;
  };
  p.bodies = {body({0}), body({0, 1})};
  p.lists = {{.step = Step::train, .calls = {{0, 0}, {0, 1}, {1, 0}, {1, 1}}}};
  return p;
}

TEST(Staging, EachInputOnceInTheOrderOfCalls) {
  const Program p = made();
  const Staging s = staging(p, p.lists[0]);
  EXPECT_EQ(s.inputs, (std::vector<StagedInput>{{0, 0, 256}, {1, 0, 512}, {2, 1, 768}, {3, 1, 1024}}));
  EXPECT_EQ(s.bytes, 1280);
}

}  // namespace
}  // namespace kintsugi::program::staging_test
