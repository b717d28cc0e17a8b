#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void embedding(const KernelCall& call) {
  const std::vector<int64_t> tokens = load_integers(call.ins[0]);  // [batch seq]
  const std::vector<double> table = load(call.ins[1]);             // [vocab embed]
  const std::vector<int64_t> row_of = local_of_global(call.index(call.ins[1].shape()[0].name));
  const int64_t embed = width(call.ins[1].shape());
  const std::vector<int64_t> place = positions_in_whole(call, call.ins[0].shape());
  std::vector<double> y;  // [batch seq embed]
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int64_t row = place[i] < 0 ? -1 : at_or_absent(row_of, tokens[i]);  // tokens at padding are ignored
    for (int64_t e = 0; e < embed; ++e) y.push_back(row < 0 ? 0.0 : table[static_cast<size_t>(row * embed + e)]);
  }
  store(call, 0, y);
}

void embedding_grad(const KernelCall& call) {
  const std::vector<int64_t> tokens = load_integers(call.ins[0]);  // [batch seq]
  const std::vector<double> dy = load(call.ins[1]);                // [batch seq embed]
  const std::vector<int64_t> row_of = local_of_global(call.index(call.outs[0].shape()[0].name));
  const int64_t embed = width(call.ins[1].shape());
  std::vector<double> dtable(static_cast<size_t>(call.outs[0].elements()), 0.0);  // [vocab embed]
  const double* dy_row = dy.data();
  for (int64_t token : tokens) {
    const int64_t row = at_or_absent(row_of, token);
    if (row >= 0) {
      for (int64_t e = 0; e < embed; ++e) dtable[static_cast<size_t>(row * embed + e)] += dy_row[e];
    }
    dy_row += embed;
  }
  store(call, 0, dtable);
}

}  // namespace kintsugi::kernels::reference
