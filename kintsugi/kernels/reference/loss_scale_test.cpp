#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::loss_scale_test {
namespace {

using namespace test;

TEST(ReferenceLossScale, Transitions) {
  const auto next = [](double finite, double scale, double good) {
    Tensor f({}, DType::f64, {finite}), s({}, DType::f64, {scale}), g({}, DType::f64, {good});
    run_reference({.kind = "loss_scale", .attributes = {{"growth_interval", int64_t{3}}}}, {&f, &s, &g}, {&s, &g});
    return std::pair(s.get(0), g.get(0));
  };
  EXPECT_EQ(next(1, 1024, 0), std::pair(1024.0, 1.0));
  EXPECT_EQ(next(1, 1024, 1), std::pair(1024.0, 2.0));
  EXPECT_EQ(next(1, 1024, 2), std::pair(2048.0, 0.0));
  EXPECT_EQ(next(0, 1024, 2), std::pair(512.0, 0.0));
  EXPECT_EQ(next(0, 1, 0), std::pair(1.0, 0.0));
  EXPECT_EQ(next(1, 16777216, 2), std::pair(16777216.0, 0.0));
}

}  // namespace
}  // namespace kintsugi::kernels::reference::loss_scale_test
