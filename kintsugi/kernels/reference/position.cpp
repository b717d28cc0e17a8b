#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void position(const KernelCall& call) {
  const std::vector<double> table = load(call.ins[0]);  // [position embed]
  const std::vector<int64_t> row_of = local_of_global(call.index("position"));
  const int64_t embed = width(call.ins[0].shape());
  std::vector<double> y;  // [seq embed]
  for (int64_t place : global_of_local(call.index("seq"))) {
    const int64_t row = at_or_absent(row_of, place);
    for (int64_t e = 0; e < embed; ++e) y.push_back(row < 0 ? 0.0 : table[static_cast<size_t>(row * embed + e)]);
  }
  store(call, 0, y);
}

void position_grad(const KernelCall& call) {
  const std::vector<double> dy = load(call.ins[0]);  // [seq embed]
  const std::vector<int64_t> row_of = local_of_global(call.index("position"));
  const int64_t embed = width(call.ins[0].shape());
  std::vector<double> dtable(static_cast<size_t>(call.outs[0].elements()), 0.0);  // [position embed]
  const double* dy_row = dy.data();
  for (int64_t place : global_of_local(call.index("seq"))) {
    const int64_t row = at_or_absent(row_of, place);
    if (row >= 0) {
      for (int64_t e = 0; e < embed; ++e) dtable[static_cast<size_t>(row * embed + e)] += dy_row[e];
    }
    dy_row += embed;
  }
  store(call, 0, dtable);
}

}  // namespace kintsugi::kernels::reference
