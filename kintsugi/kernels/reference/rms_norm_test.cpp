#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::rms_norm_test {
namespace {

using namespace test;

const Shape kX = {{"batch", 2}, {"seq", 3}, {"embed", 7}};
const Shape kEmbed = {{"embed", 7}};

TEST(ReferenceRmsNorm, SmallRowByHand) {
  Tensor x({{"embed", 2}}, DType::f64, {1, 7}), gamma({{"embed", 2}}, DType::f64, {1, 2}),
      y({{"embed", 2}}, DType::f64);
  run_reference({.kind = "rms_norm", .attributes = {{"epsilon", 24.0}}}, {&x, &gamma}, {&y});
  expect_close(y, {1 / 7.0, 2}, 1e-14, 0);  // mean of squares 25, with epsilon 49
}

TEST(ReferenceRmsNorm, Gradient) {
  check_gradient({.forward = {.kind = "rms_norm", .attributes = {{"epsilon", 1e-5}}},
                  .ins = {random_tensor(kX, DType::f64, 1), random_tensor(kEmbed, DType::f64, 2)},
                  .outs = {{kX, DType::f64}},
                  .with_respect_to = {0, 1},
                  .gradients = [](auto& ins, auto&, auto& dy) {
                    std::vector<Tensor> d = {Tensor(kX, DType::f64), Tensor(kEmbed, DType::f64)};
                    run_reference({.kind = "rms_norm_grad", .attributes = {{"epsilon", 1e-5}}},
                                  {&ins[0], &ins[1], &dy[0]}, {&d[0], &d[1]});
                    return d;
                  }});
}

}  // namespace
}  // namespace kintsugi::kernels::reference::rms_norm_test
