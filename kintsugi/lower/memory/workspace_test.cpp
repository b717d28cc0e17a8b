#include "kintsugi/lower/memory/workspace.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/pass_test.h"

namespace kintsugi::lower::workspace_test {
namespace {

// A kernel that needs a byte per thread and element of its first and optional operand, one that needs none, and one
// that names operands that its operation lacks.
class Askers : public kernels::KernelSet {
 public:
  std::string_view name() const override { return "askers"; }
  const kernels::Kernel& find(std::string_view kind) const override {
    static const auto bytes = [](const kernels::KernelShapes& s) {
      const int64_t bias = s.ins[2] ? s.ins[2]->shape.elements() : 0;
      return s.outs[0]->shape.rank() > 0 ? s.threads * (s.ins[0]->shape.elements() + bias) : 0;
    };
    static const kernels::Kernel list[] = {{"contract",
                                            {"a", "b", tensor::optional("bias"), tensor::optional("x"),
                                             tensor::optional("added"), tensor::optional("scale")},
                                            {"y", tensor::optional("x")},
                                            nullptr,
                                            bytes},
                                           {"gelu", {"x"}, {"y"}},
                                           {"silu", {"x", "dy"}, {"y"}}};
    for (const kernels::Kernel& k : list)
      if (k.kind == kind) return k;
    return list[0];
  }
};

}  // namespace

TEST(Workspace, IsABufferOfTheInstructionThatAsks) {
  Maker m;
  const BufferId x = m.arena("x", {{"a", 6}}), y = m.arena("y", {{"a", 6}}), s = m.arena("s", {}),
                 one = m.arena("one", {});
  m.body("forward");
  m.call("contract", {x, x}, {y});
  m.call("gelu", {y}, {x});
  m.call("contract", {y, x, one}, {x});
  m.call("contract", {y, x}, {s});  // asks for 0 bytes
  add_workspaces(m.p, ops::operations(), Askers(), 4);
  const auto& list = m.p.bodies[0].instructions;
  ASSERT_EQ(m.p.buffers.size(), 6u);
  EXPECT_EQ(list[0].workspace, 4);
  EXPECT_EQ(list[1].workspace, program::kNoBuffer);
  EXPECT_EQ(list[2].workspace, 5);
  EXPECT_EQ(list[3].workspace, program::kNoBuffer);
  EXPECT_EQ(m.p.buffer(4).bytes(), 24);
  EXPECT_EQ(m.p.buffer(5).bytes(), 28);
  EXPECT_EQ(m.p.buffer(4).name, "contract.workspace");
  EXPECT_EQ(m.p.buffer(4).region, program::Region::arena);
}

TEST(Workspace, AKernelTakesWhatItsOperationHas) {
  const auto error = [](const char* kernel, size_t ins, size_t outs) -> std::string {
    Maker m;
    const BufferId x = m.arena("x", {{"a", 6}});
    m.body("forward");
    m.call(kernel, std::vector<BufferId>(ins, x), std::vector<BufferId>(outs, x));
    try {
      add_workspaces(m.p, ops::operations(), Askers(), 1);
    } catch (const base::InternalError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_EQ(error("gelu", 1, 1), "");
  EXPECT_EQ(error("silu", 1, 1),
            "[workspace] internal error: silu: the operation's operands are x, its kernel's are x, dy");
  EXPECT_EQ(error("gelu", 2, 1), "[workspace] internal error: gelu with 2 operands: it has x");
  EXPECT_EQ(error("contract", 2, 1), "");
  EXPECT_EQ(error("contract", 1, 1),
            "[workspace] internal error: contract with 1 operands: it has a, b, [bias], [x], [added], [scale]");
  EXPECT_EQ(error("gelu", 1, 0), "[workspace] internal error: gelu with 0 outputs: it has y");
}

}  // namespace kintsugi::lower::workspace_test
