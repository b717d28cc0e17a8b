#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/rows.h"

namespace kintsugi::kernels::cpu {

// table: [position embed], y: [seq embed]
void position(const KernelCall& call) {
  const tensor::View &table = call.ins[0], &y = call.outs[0];
  const tensor::DimIndex &index = call.index("position"), &seq = call.index("seq");
  const int64_t bytes = table.size("embed") * tensor::size_of(table.dtype());
  for (int64_t i = 0; i < y.size("seq"); ++i) copy_row(y.data + i * bytes, table.data, local_of(index, seq[i]), bytes);
}

// dy: [seq embed], dtable: [position embed]
void position_grad(const KernelCall& call) {
  const tensor::View &dy = call.ins[0], &dtable = call.outs[0];
  const tensor::DimIndex &index = call.index("position"), &seq = call.index("seq");
  const ScatterRows scatter{.dtype = dy.dtype(),
                            .dy = dy.data,
                            .rows = dy.size("seq"),
                            .columns = dy.size("embed"),
                            .table = reinterpret_cast<float*>(dtable.data),
                            .table_rows = dtable.size("position"),
                            .add = call.accumulates(0)};
  scatter_rows(scatter, call.team, [&](int64_t i) { return local_of(index, seq[i]); });
}

}  // namespace kintsugi::kernels::cpu
