#include <limits>

#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::update_scale_test {
namespace {

using namespace test;

struct Update {
  double norm, factor, finite;
};

Update update_of(double count, double loss_scale, double clip, const std::vector<double>& blocks) {
  Tensor c({}, DType::f64, {count}), l({}, DType::f64, {loss_scale});
  Tensor first({{"block", 1}}, DType::f64, {blocks[0]});
  Tensor rest({{"block", static_cast<int64_t>(blocks.size()) - 1}}, DType::f64, {blocks.begin() + 1, blocks.end()});
  Tensor norm({}, DType::f64), factor({}, DType::f64), finite({}, DType::f64);
  run_reference({.kind = "update_scale", .attributes = {{"clip", clip}}}, {&c, &l, &first, &rest},
                {&norm, &factor, &finite});
  return {norm.get(0), factor.get(0), finite.get(0)};
}

TEST(ReferenceUpdateScale, ClipsTheGlobalNorm) {
  const Update free = update_of(8, 4, 0, {4, 12, 48});
  EXPECT_EQ(free.norm, 0.25);  // 8 / 32
  EXPECT_EQ(free.factor, 1 / 32.0);
  EXPECT_EQ(free.finite, 1);
  const Update below = update_of(8, 4, 0.5, {4, 12, 48});
  EXPECT_EQ(below.factor, 1 / 32.0);
  const Update above = update_of(8, 4, 0.1, {4, 12, 48});
  EXPECT_EQ(above.norm, 0.25);
  EXPECT_DOUBLE_EQ(above.factor, 0.1 / (0.25 + 1e-6) / 32);
}

TEST(ReferenceUpdateScale, WhatIsNotFiniteIsTold) {
  for (double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    const Update update = update_of(8, 1, 1, {1, bad});
    EXPECT_FALSE(std::isfinite(update.norm));
    EXPECT_EQ(update.factor, 0);
    EXPECT_EQ(update.finite, 0);
  }
  EXPECT_EQ(update_of(0, 1, 1, {1, 2}).finite, 0);  // no counted token
  EXPECT_EQ(update_of(0, 1, 1, {0, 0}).finite, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::update_scale_test
