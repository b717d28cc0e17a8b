#include <algorithm>

#include "kintsugi/kernels/cpu/contract_layout.h"
#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/gemm.h"
#include "kintsugi/kernels/cpu/gemm_bf16.h"
#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::DType;
using tensor::View;

// Assigns whole matmuls to threads if there are enough; otherwise a block of every matmul.
bool gives_whole_products(const ContractLayout& layout, int threads) {
  return layout.products() % threads == 0 || layout.products() >= 4 * threads;
}

// A Product or Bf16Product without memory.
template <typename P>
P product_of(const ContractLayout& layout) {
  P p;
  p.m = layout.m, p.n = layout.n, p.k = layout.k;
  p.a_row = layout.a_row, p.a_column = layout.a_column;
  p.b_row = layout.b_row, p.b_column = layout.b_column;
  p.c_row = layout.y_row;
  return p;
}

// fp32 operands: in place, or widened to the workspace.
constexpr size_t kWideIns = 3;  // a, b and bias
struct Wide {
  const float* ins[kWideIns] = {};  // null where absent
  float* out = nullptr;
  float* sums = nullptr;  // for all threads to multiply jointly; null: by shares
};

Wide take_wide(const Operands& o, const ContractLayout& layout, int threads, Scratch& scratch) {
  Wide wide;
  for (size_t i = 0; i < kWideIns; ++i)
    if (o.ins.has(i) && o.ins[i].dtype != DType::f32) wide.ins[i] = scratch.take<float>(o.ins[i].shape.elements());
  if (o.outs[0].dtype != DType::f32) wide.out = scratch.take<float>(o.outs[0].shape.elements());
  const int64_t sums =
      gives_whole_products(layout, threads) ? 0 : together_scratch(product_of<Product>(layout), threads);
  if (sums > 0) wide.sums = scratch.take<float>(sums);
  return wide;
}

// The scales of an operand b in codes; no view if b has none.
View scale_of(const KernelCall& call) {
  return call.ins.size() > ContractIn::kScale ? call.ins[ContractIn::kScale] : View();
}

Wide widen_operands(const KernelCall& call, const ContractLayout& layout) {
  Scratch scratch(call.workspace);
  Wide wide = take_wide({Types(call.ins), Types(call.outs), call.attributes}, layout, call.team.size(), scratch);
  for (size_t i = 0; i < kWideIns; ++i) {
    const View& in = call.ins[i];
    if (!in.data || in.dtype() == DType::f32) {
      wide.ins[i] = reinterpret_cast<const float*>(in.data);
      continue;
    }
    float* to = const_cast<float*>(wide.ins[i]);
    if (in.dtype() == DType::i8) {
      const View scale = scale_of(call);
      const int64_t columns = scale.elements(), rows = columns == 0 ? 0 : in.elements() / columns;
      call.team.for_shares(rows, std::max<int64_t>(1, 4096 / std::max<int64_t>(1, columns)), [&](base::Range r, int) {
        widen_codes(reinterpret_cast<const int8_t*>(in.data) + r.begin * columns,
                    reinterpret_cast<const float*>(scale.data), r.size(), columns, to + r.begin * columns);
      });
      continue;
    }
    call.team.for_shares(in.elements(), 4096, [&](base::Range r, int) {
      widen(in.dtype(), in.data + r.begin * tensor::size_of(in.dtype()), to + r.begin, r.size());
    });
  }
  if (call.outs[0].dtype() == DType::f32) wide.out = reinterpret_cast<float*>(epilogue_of(call).product());
  return wide;
}

// The matmul at one point of the batch dims.
Product product_at(const ContractLayout& layout, const Wide& wide, int64_t point, bool accumulate,
                   const Epilogue& epilogue) {
  Product p = product_of<Product>(layout);
  p.a = wide.ins[layout.swapped ? ContractIn::kB : ContractIn::kA];
  p.b = wide.ins[layout.swapped ? ContractIn::kA : ContractIn::kB];
  p.c = wide.out;
  p.bias = wide.ins[ContractIn::kBias];
  p.bias_row = layout.bias_row, p.bias_column = layout.bias_column;
  p.accumulate = accumulate;
  const BatchDim at = layout.offsets(point);
  p.a += at.a, p.b += at.b, p.c += at.y;
  if (p.bias) p.bias += at.bias;
  if (epilogue) p.epilogue = epilogue.at(at.y);
  return p;
}

// bf16 matmuls are not widened.
bool stays_narrow(const Operands& o) {
  const auto fits = [](DType dtype) { return dtype == DType::bf16 || dtype == DType::f32; };
  return o.ins[ContractIn::kA].dtype == DType::bf16 && o.ins[ContractIn::kB].dtype == DType::bf16 &&
         (!o.ins.has(ContractIn::kBias) || fits(o.ins[ContractIn::kBias].dtype)) && fits(o.outs[0].dtype);
}

Bf16Product narrow_product(const ContractLayout& layout, DType y) {
  Bf16Product p = product_of<Bf16Product>(layout);
  p.c_dtype = y;
  return p;
}

Bf16Product narrow_product_at(const ContractLayout& layout, const KernelCall& call, int64_t point) {
  const View &a = call.ins[layout.swapped ? ContractIn::kB : ContractIn::kA],
             &b = call.ins[layout.swapped ? ContractIn::kA : ContractIn::kB], &bias = call.ins[ContractIn::kBias];
  const BatchDim at = layout.offsets(point);
  Bf16Product p = narrow_product(layout, call.outs[0].dtype());
  p.a = reinterpret_cast<const tensor::bf16*>(a.data) + at.a;
  p.b = reinterpret_cast<const tensor::bf16*>(b.data) + at.b;
  p.epilogue = epilogue_of(call).at(at.y);
  p.c = p.epilogue.product();
  p.accumulate = call.accumulates(0);
  if (bias.data) {
    p.bias = {bias.data + at.bias * tensor::size_of(bias.dtype()), bias.dtype(), layout.bias_row, layout.bias_column};
  }
  return p;
}

void contract_narrow(const KernelCall& call, const ContractLayout& layout) {
  const int threads = call.team.size();
  const bool whole = gives_whole_products(layout, threads);
  Scratch memory(call.workspace);
  const Bf16Scratch scratch = take_bf16_scratch({narrow_product(layout, call.outs[0].dtype())}, threads, whole, memory);
  const int64_t products = layout.products();
  if (!whole) {
    for (int64_t i = 0; i < products; ++i) multiply(narrow_product_at(layout, call, i), scratch, call.team);
    return;
  }
  call.team.run([&](int thread) {
    const base::Range mine = base::share(products, thread, threads);
    for (int64_t i = mine.begin; i < mine.end; ++i) multiply_alone(narrow_product_at(layout, call, i), scratch, thread);
  });
}

void multiply_wide(const ContractLayout& layout, const Wide& wide, bool add, const Epilogue& epilogue,
                   base::ThreadTeam& team) {
  const int64_t products = layout.products();
  if (wide.sums) {
    for (int64_t i = 0; i < products; ++i)
      multiply_together(product_at(layout, wide, i, add, epilogue), wide.sums, team);
    return;
  }
  const int threads = team.size();
  const bool whole = gives_whole_products(layout, threads);
  team.run([&](int thread) {
    const base::Range mine = whole ? base::share(products, thread, threads) : base::Range{0, products};
    for (int64_t i = mine.begin; i < mine.end; ++i) {
      const Product product = product_at(layout, wide, i, add, epilogue);
      if (whole) {
        multiply(product);
      } else {
        multiply_share(product, thread, threads);
      }
    }
  });
}

// Whether fp32 scales multiply each row of int8 codes: their dims are the last of the codes'.
bool scales_rows(const tensor::Type& codes, const tensor::Type& scale) {
  const std::span<const tensor::Dim> all = codes.shape.dims(), last = scale.shape.dims();
  return codes.dtype == DType::i8 && scale.dtype == DType::f32 && last.size() <= all.size() &&
         std::ranges::equal(all.last(last.size()), last);
}

}  // namespace

bool contract_takes(const Operands& o) {
  if (contract_fp64_takes(o)) return true;
  const bool has_scale = o.ins.has(ContractIn::kScale);
  if (has_scale && !scales_rows(o.ins[ContractIn::kB], o.ins[ContractIn::kScale])) return false;
  for (size_t i = 0; i < o.ins.size(); ++i)
    if (o.ins.has(i) && !(has_scale && i == ContractIn::kB) && !is_fast(o.ins[i].dtype)) return false;
  return is_fast(o.outs[0].dtype) && contract_layout(o).has_value();
}

int64_t contract_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  const Operands o{Types(shapes.ins), Types(shapes.outs), shapes.attributes};
  if (contract_fp64_takes(o)) return 0;
  const ContractLayout layout = *contract_layout(o);
  if (stays_narrow(o)) {
    take_bf16_scratch({narrow_product(layout, shapes.outs[0]->dtype)}, shapes.threads,
                      gives_whole_products(layout, shapes.threads), scratch);
  } else {
    take_wide(o, layout, shapes.threads, scratch);
  }
  return scratch.bytes();
}

void contract(const KernelCall& call) {
  const Operands o{Types(call.ins), Types(call.outs), call.attributes};
  if (contract_fp64_takes(o)) return contract_fp64(call);
  const ContractLayout layout = *contract_layout(o);
  if (stays_narrow(o)) return contract_narrow(call, layout);
  const Wide wide = widen_operands(call, layout);
  const View& y = call.outs[0];
  const bool in_place = y.dtype() == DType::f32, add = in_place && call.accumulates(0);
  const Epilogue epilogue = epilogue_of(call), of_product = in_place ? epilogue : Epilogue();
  multiply_wide(layout, wide, add, of_product, call.team);
  if (in_place) return;
  constexpr int64_t kSome = 4096;  // elements; fit into the L1 cache
  call.team.for_shares(y.elements(), kSome, [&](base::Range r, int) {
    for (int64_t at = r.begin; at < r.end; at += kSome) {
      const int64_t count = std::min(kSome, r.end - at);
      narrow(y.dtype(), wide.out + at, epilogue.at(at).product(), count, call.accumulates(0));
      if (epilogue) apply(epilogue, at, 1, count, count);
    }
  });
}

}  // namespace kintsugi::kernels::cpu
