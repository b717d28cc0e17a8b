#include "kintsugi/kernels/cpu/contract_layout.h"
#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/gemm.h"
#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::DType;
using tensor::View;

// Operands in fp32: where they are, or widened in the workspace.
struct Wide {
  const float* ins[ContractIn::kNames.size()] = {};  // null where absent
  float* out = nullptr;
};

Wide take_wide(const Operands& o, Scratch& scratch) {
  Wide wide;
  for (size_t i = 0; i < o.ins.size(); ++i)
    if (o.ins.has(i) && o.ins[i].dtype != DType::f32) wide.ins[i] = scratch.take<float>(o.ins[i].shape.elements());
  if (o.outs[0].dtype != DType::f32) wide.out = scratch.take<float>(o.outs[0].shape.elements());
  return wide;
}

Wide widen_operands(const KernelCall& call) {
  Scratch scratch(call.workspace);
  Wide wide = take_wide({Types(call.ins), Types(call.outs), call.attributes}, scratch);
  for (size_t i = 0; i < call.ins.size(); ++i) {
    const View& in = call.ins[i];
    if (!in.data || in.dtype() == DType::f32) {
      wide.ins[i] = reinterpret_cast<const float*>(in.data);
      continue;
    }
    float* to = const_cast<float*>(wide.ins[i]);
    call.team.for_shares(in.elements(), 4096, [&](base::Range r, int) {
      widen(in.dtype(), in.data + r.begin * tensor::size_of(in.dtype()), to + r.begin, r.size());
    });
  }
  if (call.outs[0].dtype() == DType::f32) wide.out = reinterpret_cast<float*>(call.outs[0].data);
  return wide;
}

// The product at one point of the batch dims.
Product product_at(const ContractLayout& layout, const Wide& wide, int64_t point, bool accumulate) {
  Product p{.m = layout.m, .n = layout.n, .k = layout.k};
  p.a = wide.ins[layout.swapped ? ContractIn::kB : ContractIn::kA];
  p.b = wide.ins[layout.swapped ? ContractIn::kA : ContractIn::kB];
  p.c = wide.out;
  p.bias = wide.ins[ContractIn::kBias];
  p.a_row = layout.a_row, p.a_column = layout.a_column;
  p.b_row = layout.b_row, p.b_column = layout.b_column;
  p.c_row = layout.y_row;
  p.bias_row = layout.bias_row, p.bias_column = layout.bias_column;
  p.accumulate = accumulate;
  for (size_t i = layout.num_batch; i-- > 0;) {
    const BatchDim& dim = layout.batch[i];
    const int64_t at = point % dim.size;
    point /= dim.size;
    p.a += at * dim.a, p.b += at * dim.b, p.c += at * dim.y;
    if (p.bias) p.bias += at * dim.bias;
  }
  return p;
}

}  // namespace

bool contract_takes(const Operands& o) {
  for (size_t i = 0; i < o.ins.size(); ++i)
    if (o.ins.has(i) && !is_fast(o.ins[i].dtype)) return false;
  return is_fast(o.outs[0].dtype) && contract_layout(o).has_value();
}

int64_t contract_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_wide({Types(shapes.ins), Types(shapes.outs), shapes.attributes}, scratch);
  return scratch.bytes();
}

void contract(const KernelCall& call) {
  const ContractLayout layout = *contract_layout({Types(call.ins), Types(call.outs), call.attributes});
  const Wide wide = widen_operands(call);
  const View& y = call.outs[0];
  const bool in_place = y.dtype() == DType::f32, add = in_place && call.accumulates(0);
  const int64_t products = layout.products();
  const int threads = call.team.size();
  // Whole products for each thread where there are enough of them, else a block of every product.
  const bool whole = products % threads == 0 || products >= 4 * threads;
  call.team.run([&](int thread) {
    const base::Range mine = whole ? base::share(products, thread, threads) : base::Range{0, products};
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const Product product = product_at(layout, wide, i, add);
      if (whole) {
        multiply(product);
      } else {
        multiply_share(product, thread, threads);
      }
    }
  });
  if (in_place) return;
  call.team.for_shares(y.elements(), 4096, [&](base::Range r, int) {
    narrow(y.dtype(), wide.out + r.begin, y.data + r.begin * tensor::size_of(y.dtype()), r.size(), call.accumulates(0));
  });
}

}  // namespace kintsugi::kernels::cpu
