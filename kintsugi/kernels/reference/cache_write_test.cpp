#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::cache_write_test {
namespace {

using namespace test;

const Shape kCache = {{"batch", 2}, {"key_seq", 4}, {"kv_heads", 1}, {"head_dim", 2}};
const Shape kX = {{"batch", 2}, {"seq", 2}, {"kv_heads", 1}, {"head_dim", 2}};

TEST(ReferenceCacheWrite, ReplacesRows) {
  Tensor cache = filled(kCache, DType::bf16, 0), x(kX, DType::bf16, {1, 2, 3, 4, 5, 6, 7, 8}), y(kCache, DType::bf16);
  const Trial second = {.kind = "cache_write", .indices = {{"seq", DimIndex({{1, 2}}, 4)}}};
  run_reference(second, {&cache, &x}, {&y});
  expect_close(y, {0, 0, 1, 2, 3, 4, 0, 0, 0, 0, 5, 6, 7, 8, 0, 0}, 0, 0);
  expect_close(cache, filled(kCache, DType::f64, 0), 0, 0);
  run_reference(second, {&cache, &x}, {&cache});
  expect_close(cache, y, 0, 0);
}

TEST(ReferenceCacheWrite, DropsWhatIsOutside) {
  Tensor cache = filled(kCache, DType::f32, 0), x(kX, DType::f32, {1, 2, 3, 4, 5, 6, 7, 8});
  run_reference({.kind = "cache_write", .indices = {{"seq", DimIndex({{3, 2}}, 4)}}}, {&cache, &x}, {&cache});
  expect_close(cache, {0, 0, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 0, 0, 5, 6}, 0, 0);
  // The cache's positions are a share, too; padding is not written.
  run_reference(
      {.kind = "cache_write", .indices = {{"seq", DimIndex({{6, 1}, {-1, 1}}, 8)}, {"key_seq", DimIndex({{4, 4}}, 8)}}},
      {&cache, &x}, {&cache});
  expect_close(cache, {0, 0, 0, 0, 1, 2, 1, 2, 0, 0, 0, 0, 5, 6, 5, 6}, 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::cache_write_test
