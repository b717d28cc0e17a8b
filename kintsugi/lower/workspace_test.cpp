#include "kintsugi/lower/workspace.h"

#include <gtest/gtest.h>

#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower {
namespace {

// A kernel that asks for a byte per input element and thread, and one that asks for none.
class Askers : public kernels::KernelSet {
 public:
  std::string_view name() const override { return "askers"; }
  const kernels::Kernel& find(std::string_view kind) const override {
    static const kernels::Kernel list[] = {{"contract", nullptr,
                                            [](const kernels::KernelShapes& s) {
                                              return s.threads *
                                                     (s.ins[0].shape.elements() + (s.attributes.has("more") ? 1 : 0)) *
                                                     (s.outs[0].shape.rank() > 0 ? 1 : 0);
                                            }},
                                           {"gelu", nullptr, nullptr}};
    return list[kind != "contract"];
  }
};

}  // namespace

TEST(Workspace, IsABufferOfTheInstructionThatAsks) {
  Maker m;
  const BufferId x = m.arena("x", {{"a", 6}}), y = m.arena("y", {{"a", 6}}), s = m.arena("s", {});
  m.body("forward");
  m.call("contract", {x}, {y});
  m.call("gelu", {y}, {x});
  m.call("contract", {y}, {x}).attributes = {{"more", int64_t{1}}};
  m.call("contract", {y}, {s});  // asks for 0 bytes
  add_workspaces(m.p, Askers(), 4);
  const auto& list = m.p.bodies[0].instructions;
  ASSERT_EQ(m.p.buffers.size(), 5u);
  EXPECT_EQ(list[0].workspace, 3);
  EXPECT_EQ(list[1].workspace, program::kNoBuffer);
  EXPECT_EQ(list[2].workspace, 4);
  EXPECT_EQ(list[3].workspace, program::kNoBuffer);
  EXPECT_EQ(m.p.buffer(3).bytes(), 24);
  EXPECT_EQ(m.p.buffer(4).bytes(), 28);
  EXPECT_EQ(m.p.buffer(3).name, "contract.workspace");
  EXPECT_EQ(m.p.buffer(3).region, program::Region::arena);
}

}  // namespace kintsugi::lower
