#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::sgd_test {
namespace {

using namespace test;

TEST(ReferenceSgd, ByHandAndSkipped) {
  const Shape shape = {{"flat", 2}};
  const Trial trial = {
      .kind = "sgd", .attributes = {{"momentum", 0.5}, {"weight_decay", 0.25}}, .numbers = {.learning_rate = 0.1}};
  Tensor w(shape, DType::f64, {4, -8}), g(shape, DType::f64, {2, 2}), m(shape, DType::f64, {1, 0});
  Tensor factor({}, DType::f64, {0.5}), finite({}, DType::f64, {1}), weight(shape, DType::f32);
  run_reference(trial, {&w, &g, &m, &factor, &finite}, {&w, &m, &weight});
  expect_close(m, {2.5, -1}, 1e-15, 0);
  expect_close(w, {3.75, -7.9}, 1e-15, 0);
  expect_close(weight, w.as(DType::f32), 0, 0);

  finite.fill(0);
  g.fill(std::nan(""));
  run_reference(trial, {&w, &g, &m, &factor, &finite}, {&w, &m});
  expect_close(m, {2.5, -1}, 1e-15, 0);
  expect_close(w, {3.75, -7.9}, 1e-15, 0);
}

}  // namespace
}  // namespace kintsugi::kernels::reference::sgd_test
