#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::class_hits_test {
namespace {

using namespace test;

}  // namespace

TEST(ReferenceClassHits, ByHand) {
  Tensor logits({{"batch", 5}, {"class", 7}}, DType::f32,
                {9, 1, 2, 3, 4, 5, 6,      // the label 0 is first
                 1, 2, 3, 4, 5, 6, 7,      // 2 is fifth
                 7, 6, 5, 4, 3, 2, 1,      // 5 is sixth
                 5, 5, 1, 1, 1, 1, 1,      // 1 is second: of equal logits the first class comes first
                 1, 1, 1, 1, 1, 1, NAN}),  // NaN is never found
      labels({{"batch", 5}}, DType::i32, {0, 2, 5, 1, 6}), top1({}, DType::f64, {10}), top5({}, DType::f64, {20});
  run_reference({.kind = "class_hits"}, {&logits, &labels}, {&top1, &top5});
  EXPECT_EQ(top1.get(0), 1);
  EXPECT_EQ(top5.get(0), 3);
  labels.set(0, -1);  // not counted
  run_reference({.kind = "class_hits", .accumulate = 3}, {&logits, &labels}, {&top1, &top5});
  EXPECT_EQ(top1.get(0), 1);
  EXPECT_EQ(top5.get(0), 5);
}

}  // namespace kintsugi::kernels::reference::class_hits_test
