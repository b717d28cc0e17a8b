#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::sums_test {
namespace {

using namespace test;

const Shape kBatchSeq = {{"batch", 2}, {"seq", 3}};

TEST(ReferenceSums, Fill) {
  Tensor y(kBatchSeq, DType::bf16), scalar({}, DType::f64);
  run_reference({.kind = "fill", .attributes = {{"value", 1.5}}}, {}, {&y});
  expect_close(y, filled(kBatchSeq, DType::f64, 1.5), 0, 0);
  run_reference({.kind = "fill", .attributes = {{"value", 0.0}}}, {}, {&scalar});
  EXPECT_EQ(scalar.get(0), 0);
}

TEST(ReferenceSums, BroadcastInAnyOrder) {
  Tensor x({{"embed", 2}, {"batch", 2}}, DType::f32, {1, 2, 3, 4}), scalar({}, DType::f32, {7});
  Tensor y({{"batch", 2}, {"seq", 2}, {"embed", 2}}, DType::f32);
  run_reference({.kind = "broadcast"}, {&x}, {&y});
  expect_close(y, {1, 3, 1, 3, 2, 4, 2, 4}, 0, 0);
  run_reference({.kind = "broadcast"}, {&scalar}, {&y});
  expect_close(y, {7, 7, 7, 7, 7, 7, 7, 7}, 0, 0);
}

TEST(ReferenceSums, AddBroadcastsAndWorksInPlace) {
  Tensor a(kBatchSeq, DType::f32, {1, 2, 3, 4, 5, 6}), b({{"seq", 3}}, DType::f32, {10, 20, 30});
  Tensor c({{"seq", 3}, {"batch", 2}}, DType::f32, {100, 200, 300, 400, 500, 600});
  run_reference({.kind = "add"}, {&a, &b, &c}, {&a});
  expect_close(a, {111, 322, 533, 214, 425, 636}, 0, 0);
  run_reference({.kind = "add"}, {&a}, {&a});
  expect_close(a, {111, 322, 533, 214, 425, 636}, 0, 0);
}

TEST(ReferenceSums, ScaleInPlace) {
  Tensor x(kBatchSeq, DType::f16, {1, 2, 3, 4, 5, 6});
  run_reference({.kind = "scale", .attributes = {{"by", -0.5}}}, {&x}, {&x});
  expect_close(x, {-0.5, -1, -1.5, -2, -2.5, -3}, 0, 0);
}

TEST(ReferenceSums, SumOverAnyDims) {
  const Shape shape = {{"batch", 2}, {"seq", 3}, {"embed", 2}};
  Tensor x(shape, DType::bf16, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12});
  Tensor all({}, DType::f32), seq({{"seq", 3}}, DType::f32), turned({{"embed", 2}, {"batch", 2}}, DType::bf16);
  run_reference({.kind = "sum"}, {&x}, {&all});
  expect_close(all, {78}, 0, 0);
  run_reference({.kind = "sum"}, {&x}, {&seq});
  expect_close(seq, {18, 26, 34}, 0, 0);
  run_reference({.kind = "sum", .accumulate = 1}, {&x}, {&seq});
  expect_close(seq, {36, 52, 68}, 0, 0);
  run_reference({.kind = "sum"}, {&x}, {&turned});
  expect_close(turned, {9, 27, 12, 30}, 0, 0);
}

TEST(ReferenceSums, CastRoundsOnceToEven) {
  // 1 + 2^-8 is a bf16 tie; anything above it must round up, even if fp32 cannot represent the difference.
  Tensor x({{"embed", 5}}, DType::f64, {1 + 0x1p-8, 1 + 0x1p-8 + 0x1p-40, 1 + 3 * 0x1p-8 - 0x1p-40, 1e300, -0.25});
  Tensor narrow(x.type().shape, DType::bf16), half(x.type().shape, DType::f16), single(x.type().shape, DType::f32);
  run_reference({.kind = "cast"}, {&x}, {&narrow});
  const double infinity = std::numeric_limits<double>::infinity();
  expect_close(narrow, {1, 1 + 0x1p-7, 1 + 0x1p-7, infinity, -0.25}, 0, 0);
  run_reference({.kind = "cast"}, {&x}, {&half});
  expect_close(half, {1 + 0x1p-8, 1 + 0x1p-8, 1 + 3 * 0x1p-8, infinity, -0.25}, 0, 0);
  run_reference({.kind = "cast"}, {&narrow}, {&single});
  expect_close(single, narrow, 0, 0);
}

TEST(ReferenceSums, Accumulate) {
  Tensor x(kBatchSeq, DType::bf16, {1, 2, 3, 4, 5, 6}), y(kBatchSeq, DType::f32);
  run_reference({.kind = "accumulate"}, {&x}, {&y});
  expect_close(y, x, 0, 0);
  run_reference({.kind = "accumulate", .accumulate = 1}, {&x}, {&y});
  expect_close(y, {2, 4, 6, 8, 10, 12}, 0, 0);
}

TEST(ReferenceSums, NoElements) {
  Tensor x({{"batch", 0}, {"embed", 3}}, DType::f32), y({{"embed", 3}}, DType::f32);
  run_reference({.kind = "sum"}, {&x}, {&y});
  expect_close(y, {0, 0, 0}, 0, 0);
  run_reference({.kind = "add"}, {&x, &y}, {&x});
}

TEST(ReferenceSums, OtherDTypesAndKindsAreErrors) {
  Tensor x = random_integers(kBatchSeq, 1, 0, 5), y(kBatchSeq, DType::f32);
  try {
    run_reference({.kind = "cast"}, {&x}, {&y});
    FAIL();
  } catch (const base::InternalError& error) {
    EXPECT_STREQ(error.what(), "[dtype] internal error: int32 is not floating");
  }
  try {
    run_reference({.kind = "norm"}, {&x}, {&y});
    FAIL();
  } catch (const base::InternalError& error) {
    EXPECT_STREQ(error.what(), "[kernels] internal error: the reference set has no kernel \"norm\"");
  }
}

}  // namespace
}  // namespace kintsugi::kernels::reference::sums_test
