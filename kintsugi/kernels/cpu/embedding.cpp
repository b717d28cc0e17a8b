#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/padding.h"
#include "kintsugi/kernels/cpu/rows.h"

namespace kintsugi::kernels::cpu {

// tokens: [batch seq], table: [vocab embed], y: [batch seq embed]
void embedding(const KernelCall& call) {
  const int32_t* tokens = reinterpret_cast<const int32_t*>(call.ins[0].data);
  const tensor::View &table = call.ins[1], &y = call.outs[0];
  const tensor::DimIndex& index = call.index(call.ins[1].shape()[0].name);
  const int64_t bytes = table.size("embed") * tensor::size_of(table.dtype());
  call.team.for_shares(call.ins[0].elements(), 8, [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i)
      copy_row(y.data + i * bytes, table.data, local_of(index, tokens[i]), bytes);
  });
  // Ignores tokens at padding.
  for (size_t axis = 0; axis < call.ins[0].shape().rank(); ++axis) clear_padding(call, y, axis);
}

// tokens: [batch seq], dy: [batch seq embed], dtable: [vocab embed]
void embedding_grad(const KernelCall& call) {
  const int32_t* tokens = reinterpret_cast<const int32_t*>(call.ins[0].data);
  const tensor::View &dy = call.ins[1], &dtable = call.outs[0];
  const tensor::DimIndex& index = call.index(call.outs[0].shape()[0].name);
  const ScatterRows scatter{.dtype = dy.dtype(),
                            .dy = dy.data,
                            .rows = call.ins[0].elements(),
                            .columns = dy.size("embed"),
                            .table = reinterpret_cast<float*>(dtable.data),
                            .table_rows = dtable.shape()[0].size,
                            .add = call.accumulates(0)};
  scatter_rows(scatter, call.team, [&](int64_t i) { return local_of(index, tokens[i]); });
}

}  // namespace kintsugi::kernels::cpu
