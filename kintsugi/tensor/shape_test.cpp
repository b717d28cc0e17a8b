#include "kintsugi/tensor/shape.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::tensor::shape_test {
namespace {

TEST(Shape, CopiesShareTheirDims) {
  const Shape a = {{"batch", 4}, {"seq", 8}};
  const Shape copy = a, other = {{"batch", 4}, {"seq", 8}};
  EXPECT_EQ(&a.dims(), &copy.dims());
  EXPECT_NE(&a.dims(), &other.dims());
  EXPECT_EQ(a, other);
  EXPECT_NE(a, (Shape{{"batch", 4}, {"seq", 9}}));
  EXPECT_NE(a, (Shape{{"batch", 4}, {"key_seq", 8}}));
  EXPECT_NE(a, (Shape{{"batch", 4}}));
}

TEST(Shape, AScalarHasNoDimsAndOneElement) {
  const Shape scalar, listed(std::vector<Dim>{});
  EXPECT_EQ(scalar, listed);
  EXPECT_EQ(scalar.rank(), 0u);
  EXPECT_EQ(scalar.elements(), 1);
  EXPECT_EQ(to_string(scalar), "[]");
  EXPECT_NE(scalar, (Shape{{"batch", 1}}));
}

TEST(Shape, ElementsAreTheProductOfTheSizes) {
  EXPECT_EQ((Shape{{"batch", 4}, {"seq", 8}, {"embed", 3}}).elements(), 96);
  EXPECT_EQ((Shape{{"batch", 0}, {"seq", 8}}).elements(), 0);
}

TEST(Shape, RefusesANameTwice) {
  try {
    Shape{{"seq", 2}, {"embed", 3}, {"seq", 4}};
    FAIL();
  } catch (const base::InternalError& e) {
    EXPECT_STREQ(e.what(), "[shape] internal error: [seq:2 embed:3 seq:4] holds \"seq\" twice");
  }
}

}  // namespace
}  // namespace kintsugi::tensor::shape_test
