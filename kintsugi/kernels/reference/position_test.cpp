#include "kintsugi/kernels/reference/gradient_check.h"

namespace kintsugi::kernels::reference::position_test {
namespace {

using namespace test;

const Shape kTable = {{"position", 6}, {"embed", 2}};
const Shape kY = {{"seq", 4}, {"embed", 2}};

TEST(ReferencePosition, RowsOfGlobalIndices) {
  Tensor table = random_tensor(kTable, DType::f32, 1), y(kY, DType::f32);
  // Parts that are not contiguous, a position beyond the table, padding.
  run_reference({.kind = "position", .indices = {{"seq", DimIndex({{1, 1}, {5, 2}, {-1, 1}}, 8)}}}, {&table}, {&y});
  expect_close(y, {table.get(2), table.get(3), table.get(10), table.get(11), 0, 0, 0, 0}, 0, 0);
}

TEST(ReferencePosition, Gradient) {
  for (const DimIndex& seq : {DimIndex(4), DimIndex({{0, 1}, {4, 2}, {-1, 1}}, 6)}) {
    const std::vector<NamedIndex> indices = {{"seq", seq}};
    GradientCheck check{.forward = {.kind = "position", .indices = indices},
                        .ins = {random_tensor(kTable, DType::f64, 1)},
                        .outs = {{kY, DType::f64}},
                        .with_respect_to = {0}};
    check.gradients = [&](auto&, auto&, auto& dy) {
      std::vector<Tensor> d = {Tensor(kTable, DType::f64)};
      run_reference({.kind = "position_grad", .indices = indices}, {&dy[0]}, {&d[0]});
      return d;
    };
    check_gradient(check);
  }
}

}  // namespace
}  // namespace kintsugi::kernels::reference::position_test
