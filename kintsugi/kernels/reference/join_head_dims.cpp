#include "kintsugi/kernels/reference/experts.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void join_head_dims(const KernelCall& call) {
  const View &a_view = call.ins[0], &b_view = call.ins[1], &y_view = call.outs[0];
  const std::vector<double> a = load(a_view), b = b_view.data ? load(b_view) : std::vector<double>();
  const int64_t of_a = width(a_view.shape()), of_b = b_view.data ? width(b_view.shape()) : 0,
                of_y = width(y_view.shape()), heads = rows(y_view.shape()),
                repeats = b_view.data && heads > 0 ? heads / rows(b_view.shape()) : 1;
  std::vector<double> y(static_cast<size_t>(heads * of_y), 0.0);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < of_a; ++i)
      y[static_cast<size_t>(head * of_y + i)] = a[static_cast<size_t>(head * of_a + i)];
    for (int64_t i = 0; i < of_b; ++i)
      y[static_cast<size_t>(head * of_y + of_a + i)] = b[static_cast<size_t>(head / repeats * of_b + i)];
  }
  store(call, 0, y);
}

void join_head_dims_grad(const KernelCall& call) {
  const View &y_view = call.ins[0], &a_view = call.outs[0], &b_view = call.outs[1];
  const std::vector<double> y = load(y_view);
  const int64_t of_a = width(a_view.shape()), of_b = b_view.data ? width(b_view.shape()) : 0,
                of_y = width(y_view.shape()), heads = rows(y_view.shape()),
                repeats = b_view.data && heads > 0 ? heads / rows(b_view.shape()) : 1;
  std::vector<double> a(static_cast<size_t>(heads * of_a)),
      b(b_view.data ? static_cast<size_t>(b_view.elements()) : 0, 0.0);
  for (int64_t head = 0; head < heads; ++head) {
    for (int64_t i = 0; i < of_a; ++i)
      a[static_cast<size_t>(head * of_a + i)] = y[static_cast<size_t>(head * of_y + i)];
    for (int64_t i = 0; i < of_b; ++i)
      b[static_cast<size_t>(head / repeats * of_b + i)] += y[static_cast<size_t>(head * of_y + of_a + i)];
  }
  store(call, 0, a);
  if (b_view.data) store(call, 1, b);
}

}  // namespace kintsugi::kernels::reference
