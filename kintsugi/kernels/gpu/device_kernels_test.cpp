#include <algorithm>

#include "kintsugi/kernels/gpu/compare_test.h"
#include "kintsugi/kernels/reference/reference.h"

namespace kintsugi::kernels::test {
namespace {

// Kinds of operations that the reference has and devices refuse, by name.
const std::vector<std::string_view> kRefused = {
};

TEST(OnDevice, HasEveryKindOrRefusesIt) {
  for (const Kernel& kernel : reference::list()) {
    const bool refused = std::ranges::find(kRefused, kernel.kind) != kRefused.end();
    if (refused) {
      EXPECT_THROW(kernels_under_test().find(kernel.kind), base::UserError) << kernel.kind;
      continue;
    }
    const Kernel& same = kernels_under_test().find(kernel.kind);
    EXPECT_EQ(same.kind, kernel.kind);
    EXPECT_EQ(to_string(same.ins), to_string(kernel.ins));
    EXPECT_EQ(to_string(same.outs), to_string(kernel.outs));
    EXPECT_NE(same.run, nullptr);
    EXPECT_NE(same.run, kernel.run) << kernel.kind << " is that of the reference";
  }
}

TEST(OnDevice, ANameThatNoneHasIsRefused) {
  try {
    kernels_under_test().find("teleport");
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_STREQ(e.what(), "[kernels] a device has no kernel for \"teleport\" yet: parallel.device = \"cpu\" has");
  }
}

}  // namespace
}  // namespace kintsugi::kernels::test
