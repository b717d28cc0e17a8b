#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::take_test {
namespace {

using namespace test;

TEST(ReferenceTake, OnePosition) {
  Tensor x({{"batch", 2}, {"seq", 3}, {"embed", 2}}, DType::f32, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Tensor y({{"batch", 2}, {"embed", 2}}, DType::f32);
  run_reference({.kind = "take", .numbers = {.last = 1}}, {&x}, {&y});
  expect_close(y, {3, 4, 9, 10}, 0, 0);
  try {
    run_reference({.kind = "take", .numbers = {.last = 3}}, {&x}, {&y});
    FAIL();
  } catch (const base::InternalError& error) {
    EXPECT_STREQ(error.what(), "[take] internal error: position 3 of [batch:2 seq:3 embed:2]");
  }
}

}  // namespace
}  // namespace kintsugi::kernels::reference::take_test
