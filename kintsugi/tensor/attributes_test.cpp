#include "kintsugi/tensor/attributes.h"

#include <gtest/gtest.h>

namespace kintsugi::tensor::attributes_test {
namespace {

TEST(Attributes, AChangeLeavesCopiesAsTheyWere) {
  const Attributes original = {{"p", 0.1}, {"key", "layer0"}};
  Attributes changed = original;
  EXPECT_EQ(&changed.list(), &original.list());
  changed.set("p", 0.2);
  changed.set("inverse", int64_t{1});
  EXPECT_EQ(to_string(original), "p=0.1 key=layer0");
  EXPECT_EQ(to_string(changed), "p=0.2 key=layer0 inverse=1");
}

TEST(Attributes, AreEqualByWhatTheySay) {
  const Attributes a = {{"p", 0.1}};
  Attributes b;
  EXPECT_TRUE(b.empty());
  EXPECT_EQ(b, Attributes{});
  EXPECT_NE(a, b);
  b.set("p", 0.1);
  EXPECT_EQ(a, b);
}

}  // namespace
}  // namespace kintsugi::tensor::attributes_test
