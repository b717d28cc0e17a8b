#include <algorithm>

#include "kintsugi/kernels/cpu/contract_layout.h"
#include "kintsugi/kernels/cpu/gemm_fp64.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/reference/finish_contract.h"

namespace kintsugi::kernels::cpu {

bool contract_fp64_takes(const Operands& o) {
  const auto is_wide = [](const tensor::Type& type) { return type.dtype == tensor::DType::f64; };
  return is_wide(o.ins[ContractIn::kA]) && is_wide(o.ins[ContractIn::kB]) && is_wide(o.outs[0]) &&
         !o.attributes.has("first") && !o.ins.has(ContractIn::kScale) && contract_layout(o).has_value();
}

void contract_fp64(const KernelCall& call) {
  const ContractLayout layout = *contract_layout({Types(call.ins), Types(call.outs), call.attributes});
  const tensor::View &a = call.ins[layout.swapped ? ContractIn::kB : ContractIn::kA],
                     &b = call.ins[layout.swapped ? ContractIn::kA : ContractIn::kB];
  std::vector<double> y(static_cast<size_t>(call.outs[0].elements()));
  const auto product_at = [&](int64_t point) {
    const BatchDim at = layout.offsets(point);
    return WideProduct{.m = layout.m,
                       .n = layout.n,
                       .k = layout.k,
                       .a = reinterpret_cast<const double*>(a.data) + at.a,
                       .a_row = layout.a_row,
                       .a_column = layout.a_column,
                       .b = reinterpret_cast<const double*>(b.data) + at.b,
                       .b_row = layout.b_row,
                       .b_column = layout.b_column,
                       .c = y.data() + at.y,
                       .c_row = layout.y_row};
  };
  const int64_t products = layout.products();
  if (products >= call.team.size()) {
    call.team.for_shares(products, 1, [&](base::Range mine, int) {
      for (int64_t i = mine.begin; i < mine.end; ++i) multiply(product_at(i));
    });
  } else {
    for (int64_t i = 0; i < products; ++i) multiply(product_at(i), call.team);
  }
  reference::finish_contract(call, std::move(y));
}

}  // namespace kintsugi::kernels::cpu
