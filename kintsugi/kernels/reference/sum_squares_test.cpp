#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::sum_squares_test {
namespace {

using namespace test;

TEST(ReferenceSumSquares, LastBlockIsShort) {
  Tensor g = filled({{"flat", 2500}}, DType::f32, 2), blocks({{"block", 3}}, DType::f64);
  g.set(0, 3);
  g.set(2499, 0);
  run_reference({.kind = "sum_squares"}, {&g}, {&blocks});
  expect_close(blocks, {4101, 4096, 451 * 4}, 0, 0);
  Tensor matrix = filled({{"vocab", 5}, {"embed", 3}}, DType::f32, 1), one({{"block", 1}}, DType::f64);
  run_reference({.kind = "sum_squares"}, {&matrix}, {&one});
  expect_close(one, {15}, 0, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::sum_squares_test
