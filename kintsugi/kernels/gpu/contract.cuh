// Contraction: the product of two values, summed over every dim that the output lacks. One gemm call, or a slow kernel
// if it is not a matrix product.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/contract_layout.h"
#include "kintsugi/kernels/gpu/norm_within.h"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {

void ContractDims::add(const ContractDim& dim) {
  base::require(count < kMostContractDims, "contract", "more than {} dims that do not merge", kMostContractDims);
  at[static_cast<size_t>(count++)] = dim;
}

namespace {

using kernels::ContractIn;
using kernels::ContractOut;
using tensor::Dim;
using tensor::Shape;

int64_t stride_of(const Shape& shape, std::string_view name) {
  const int at = shape.find(name);
  return at < 0 ? 0 : shape.stride(static_cast<size_t>(at));
}

// Appends a dim, merging it with the last one if it is adjacent inside it in all operands.
void append(ContractDims& list, const ContractDim& dim) {
  if (list.count > 0) {
    ContractDim& last = list.at[static_cast<size_t>(list.count - 1)];
    const int64_t n = dim.size;
    if (last.a == dim.a * n && last.b == dim.b * n && last.y == dim.y * n && last.bias == dim.bias * n) {
      last = {last.size * n, dim.a, dim.b, dim.y, dim.bias};
      return;
    }
  }
  list.add(dim);
}

// How a matrix with these strides is stored; nothing if neither rows nor columns are contiguous.
std::optional<GemmOperand> operand(int64_t rows, int64_t row, int64_t columns, int64_t column) {
  if (column == 1 || columns == 1) return GemmOperand{nullptr, rows == 1 ? columns : row, false};
  if (row == 1 || rows == 1) return GemmOperand{nullptr, column, true};
  return std::nullopt;
}

// With `row` and `column` as matrix dims, and all others as batch dims.
std::optional<ContractProduct> product_of(const ContractLists& lists, int row, int column) {
  const auto at = [](const ContractDims& list, int i) {
    return i < list.count ? list.at[static_cast<size_t>(i)] : ContractDim();
  };
  ContractDim r = at(lists.rows, row), c = at(lists.columns, column), k = at(lists.summed, 0);
  ContractProduct p;
  // The columns of c must be contiguous: if those of y are not, compute the transposed product b^T a^T.
  p.swapped = c.size > 1 ? c.y != 1 : r.size > 1;
  if (p.swapped) {
    std::swap(r, c);
    for (ContractDim* d : {&r, &c, &k}) std::swap(d->a, d->b);
  }
  if (c.size > 1 && c.y != 1) return std::nullopt;
  const auto a = operand(r.size, r.a, k.size, k.a), b = operand(k.size, k.b, c.size, c.b);
  if (!a || !b) return std::nullopt;
  Gemm& g = p.gemm;
  g.m = r.size, g.n = c.size, g.k = k.size;
  g.a = *a, g.b = *b;
  g.c_step = r.size == 1 ? c.size : r.y;
  g.bias_row = r.bias, g.bias_column = c.bias;
  const auto loop = [&](const ContractDims& list, int but) {
    for (int i = 0; i < list.count; ++i) {
      if (i == but) continue;
      if (g.num_batch == kMostGemmBatches) return false;
      ContractDim d = list.at[static_cast<size_t>(i)];
      if (p.swapped) std::swap(d.a, d.b);
      g.batch[static_cast<size_t>(g.num_batch++)] = {d.size, d.a, d.b, d.y, d.bias};
    }
    return true;
  };
  if (!loop(lists.batch, -1) || !loop(lists.rows, row) || !loop(lists.columns, column)) return std::nullopt;
  return p;
}

// Operands of a kernel over all elements of y.
struct Operands {
  const void *a, *b, *bias;
  void* y;
  DType a_dtype, b_dtype, bias_dtype, y_dtype;
  bool add;
};

template <typename Sum>
__device__ Sum load_any(const void* x, DType dtype, int64_t i) {
  if (sizeof(Sum) == 8 && dtype == DType::f64) return static_cast<Sum>(static_cast<const double*>(x)[i]);
  return dtype == DType::f32    ? static_cast<const float*>(x)[i]
         : dtype == DType::bf16 ? widen(static_cast<const bf16*>(x)[i])
                                : widen(static_cast<const f16*>(x)[i]);
}

// One thread per element of y: slow. Sum: double if y is fp64.
template <typename Sum>
__global__ void __launch_bounds__(kPieceThreads)
    contract_any(Operands o, ContractDims kept, ContractDims summed, int64_t elements, int64_t terms) {
  for (int64_t i = first_piece(); i < elements; i += all_threads()) {
    int64_t a = 0, b = 0, y = 0, bias = 0, left = i;
    for (int d = kept.count; d-- > 0;) {
      const ContractDim& dim = kept.at[static_cast<size_t>(d)];
      const int64_t at = left % dim.size;
      left /= dim.size;
      a += at * dim.a, b += at * dim.b, y += at * dim.y, bias += at * dim.bias;
    }
    Sum sum = 0;
    for (int64_t j = 0; j < terms; ++j) {
      int64_t from_a = a, from_b = b;
      left = j;
      for (int d = summed.count; d-- > 0;) {
        const ContractDim& dim = summed.at[static_cast<size_t>(d)];
        const int64_t at = left % dim.size;
        left /= dim.size;
        from_a += at * dim.a, from_b += at * dim.b;
      }
      sum += load_any<Sum>(o.a, o.a_dtype, from_a) * load_any<Sum>(o.b, o.b_dtype, from_b);
    }
    if (o.bias != nullptr) sum += load_any<Sum>(o.bias, o.bias_dtype, bias);
    if constexpr (sizeof(Sum) == 8) {
      double* const to = static_cast<double*>(o.y) + y;
      *to = o.add ? *to + sum : sum;
    } else {
      o.y_dtype == DType::f32    ? put(static_cast<float*>(o.y) + y, sum, o.add)
      : o.y_dtype == DType::bf16 ? put(static_cast<bf16*>(o.y) + y, sum, o.add)
                                 : put(static_cast<f16*>(o.y) + y, sum, o.add);
    }
  }
}

bool is_stored(DType dtype) {
  return dtype == DType::f32 || dtype == DType::bf16 || dtype == DType::f16;
}

ContractLists lists_of(const tensor::Type& a, const tensor::Type& b, const tensor::Type& y, const tensor::Type* bias) {
  return contract_lists(a.shape, b.shape, y.shape, bias == nullptr ? nullptr : &bias->shape);
}

std::optional<ContractProduct> product_of(const ContractLists& lists, DType a, DType b, DType y) {
  if (a != b || (y != a && (y != DType::f32 || a == DType::f64))) return std::nullopt;
  return contract_product(lists);
}

GemmFunction function_of(std::string_view operation, const tensor::Attributes& attributes) {
  if (operation.ends_with("_grad")) operation.remove_suffix(5);
  if (operation == "gelu") return attributes.text("form") == "tanh" ? GemmFunction::gelu_tanh : GemmFunction::gelu_erf;
  if (operation == "silu") return GemmFunction::silu;
  if (operation == "relu") return GemmFunction::relu;
  if (operation == "relu2") return GemmFunction::relu2;
  if (operation == "tanh") return GemmFunction::tanh;
  throw base::InternalError("contract", "no epilogue \"{}\"", operation);
}

// The second operand from its first column used; it may have more columns than y.
View second_of(const KernelCall& call) {
  View b = call.ins[ContractIn::kB];
  b.data += call.attributes.integer_or("first", 0) * tensor::size_of(b.dtype());
  return b;
}

// Without epilogue: y alone.
GemmEpilogue epilogue_of(const KernelCall& call) {
  const View &y = call.outs[ContractOut::kY], &kept = call.outs[ContractOut::kX], &taken = call.ins[ContractIn::kX];
  GemmEpilogue e = {.x = y.data, .y = y.data};
  if (!call.attributes.has("epilogue")) return e;
  e.function = function_of(call.attributes.text("epilogue"), call.attributes);
  e.slope = taken.data != nullptr;
  if (e.slope || kept.data != nullptr) e.x = e.slope ? taken.data : kept.data;
  return e;
}

void contract_slowly(const KernelCall& call, const ContractLists& lists, void* to) {
  const View &a = call.ins[ContractIn::kA], b = second_of(call), &y = call.outs[0], &bias = call.ins[ContractIn::kBias];
  const bool wide = y.dtype() == DType::f64;
  for (const View* v : {&a, &b, &y})
    base::require(is_stored(v->dtype()) || (wide && v->dtype() == DType::f64), "contract",
                  "{} in {} on a device, which has fp32, bf16 and fp16, and fp64 in fp64", name_of(v->dtype()),
                  name_of(y.dtype()));
  ContractDims kept, summed;
  for (const ContractDims* list : {&lists.batch, &lists.rows, &lists.columns})
    for (int i = 0; i < list->count; ++i) kept.add(list->at[static_cast<size_t>(i)]);
  for (const ContractDims* list : {&lists.summed, &lists.lone})
    for (int i = 0; i < list->count; ++i) summed.add(list->at[static_cast<size_t>(i)]);
  const Operands o = {.a = a.data,
                      .b = b.data,
                      .bias = bias.data,
                      .y = to,
                      .a_dtype = a.dtype(),
                      .b_dtype = b.dtype(),
                      .bias_dtype = bias.dtype(),
                      .y_dtype = y.dtype(),
                      .add = call.accumulates(0)};
  launch_pieces(*call.stream, y.elements(), wide ? contract_any<double> : contract_any<float>, o, kept, summed,
                y.elements(), summed.size());
}

Gemm gemm_of(const KernelCall& call, const ContractProduct& product) {
  const View &a = call.ins[ContractIn::kA], b = second_of(call), &y = call.outs[0], &bias = call.ins[ContractIn::kBias];
  Gemm g = product.gemm;
  g.dtype = a.dtype(), g.c_dtype = y.dtype(), g.tf32 = call.tf32;
  g.a.data = (product.swapped ? b : a).data, g.b.data = (product.swapped ? a : b).data;
  g.epilogue = epilogue_of(call);
  g.c = g.epilogue.product();
  g.accumulate = call.accumulates(0);
  if (bias.data != nullptr) g.bias = bias.data, g.bias_dtype = bias.dtype();
  g.workspace = call.workspace.data();
  g.workspace_bytes = std::min(static_cast<int64_t>(call.workspace.size()), gemm_workspace(y.elements()));
  return g;
}

// --- An operand b of another type than a: int8 codes with a scale per column, or a narrower floating type

bool is_converted(const tensor::Type& a, const tensor::Type& b) {
  return a.dtype != b.dtype && is_stored(a.dtype) &&
         (b.dtype == DType::i8 || (is_stored(b.dtype) && (a.dtype == DType::f32 || b.dtype != DType::f32)));
}
int64_t converted_bytes(const tensor::Type& a, const tensor::Type& b) {
  return is_converted(a, b) ? (b.shape.elements() * tensor::size_of(a.dtype) + 255) / 256 * 256 : 0;
}

// y = x, times the scale of the column if there are scales; N elements at a time.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads)
    convert_operand(const void* x, DType dtype, const float* scale, Divisor columns, T* y, int64_t count) {
  for (int64_t at = first_piece() * N; at + N <= count; at += all_threads() * N) {
    float some[N];
    if (dtype == DType::i8) {
      const auto codes = *reinterpret_cast<const Vec<int8_t, N>*>(static_cast<const int8_t*>(x) + at);
      const int64_t column = at - columns.quotient(at) * columns.by;
      GPU_UNROLL
      for (int i = 0; i < N; ++i) some[i] = static_cast<float>(codes[i]) * scale[column + i];
    } else {
      AnyData{const_cast<void*>(x), dtype}.load(some, at);
    }
    put_run(y + at, some, false);
  }
}

// The call with b converted, at the beginning of the workspace; its operands are in `ins`.
KernelCall with_converted(const KernelCall& call, std::vector<View>& ins) {
  const View &a = call.ins[ContractIn::kA], &b = call.ins[ContractIn::kB];
  const View scale = call.ins.size() > ContractIn::kScale ? call.ins[ContractIn::kScale] : View();
  base::require((b.dtype() == DType::i8) == (scale.data != nullptr), "contract", "{} {} scales", name_of(b.dtype()),
                scale.data == nullptr ? "without" : "with");
  const int64_t bytes = converted_bytes(a.type, b.type), count = b.elements();
  KernelCall made = call;
  ins.assign(call.ins.begin(), call.ins.end());
  ins[ContractIn::kB] = {call.workspace.data(), {b.shape(), a.dtype()}};
  if (ins.size() > ContractIn::kScale) ins[ContractIn::kScale] = View();
  made.ins = ins, made.workspace = call.workspace.subspan(static_cast<size_t>(bytes));
  const int64_t columns = std::max<int64_t>(scale.data == nullptr ? 1 : scale.elements(), 1);
  KINTSUGI_GPU::dispatch("contract", a.dtype(), [&]<typename T>(T) {
    T* const to = reinterpret_cast<T*>(call.workspace.data());
    const bool wide = count % 8 == 0 && (scale.data == nullptr || columns % 8 == 0) && all_wide(b.data, to);
    const auto kernel = wide ? convert_operand<T, 8> : convert_operand<T, 1>;
    launch_pieces(*call.stream, wide ? count / 8 : count, kernel, b.data, b.dtype(), data<float>(scale),
                  Divisor(columns), to, count);
  });
  return made;
}

View added_of(const KernelCall& call) {
  return call.ins.size() > ContractIn::kAdded ? call.ins[ContractIn::kAdded] : View();
}

ContractLists lists_of(const KernelCall& call) {
  const View& bias = call.ins[ContractIn::kBias];
  return lists_of(call.ins[ContractIn::kA].type, call.ins[ContractIn::kB].type, call.outs[0].type,
                  bias.data == nullptr ? nullptr : &bias.type);
}

}  // namespace

ContractLists contract_lists(const Shape& a, const Shape& b, const Shape& y, const Shape* bias) {
  ContractLists lists;
  const auto dim_of = [&](const Dim& dim) {
    return ContractDim{dim.size, stride_of(a, dim.name), stride_of(b, dim.name), stride_of(y, dim.name),
                       bias == nullptr ? 0 : stride_of(*bias, dim.name)};
  };
  for (const Dim& dim : y) {
    if (dim.size == 1) continue;
    const bool in_a = a.has(dim.name), in_b = b.has(dim.name);
    append(in_a && in_b ? lists.batch : in_b ? lists.columns : lists.rows, dim_of(dim));
  }
  for (const Dim& dim : a)
    if (dim.size != 1 && !y.has(dim.name)) append(b.has(dim.name) ? lists.summed : lists.lone, dim_of(dim));
  for (const Dim& dim : b)
    if (dim.size != 1 && !y.has(dim.name) && !a.has(dim.name)) append(lists.lone, dim_of(dim));
  return lists;
}

std::optional<ContractProduct> contract_product(const ContractLists& lists) {
  if (lists.summed.count > 1 || lists.lone.count > 0) return std::nullopt;
  std::optional<ContractProduct> best;
  for (int row = 0; row < std::max(lists.rows.count, 1); ++row)
    for (int column = 0; column < std::max(lists.columns.count, 1); ++column) {
      const auto p = product_of(lists, row, column);
      if (p && (!best || p->gemm.m * p->gemm.n > best->gemm.m * best->gemm.n)) best = p;
    }
  constexpr int64_t kTiny = 16;  // elements of y; for so few, one thread per element is faster than a block
  if (best && best->gemm.products() > 1 && best->gemm.m * best->gemm.n < kTiny) return std::nullopt;
  return best;
}

int64_t contract_workspace(const KernelShapes& shapes) {
  const tensor::Type &a = *shapes.ins[ContractIn::kA], &b = *shapes.ins[ContractIn::kB], &y = *shapes.outs[0];
  const int64_t converted = converted_bytes(a, b);
  const DType of_b = converted > 0 ? a.dtype : b.dtype;
  const bool fits = product_of(lists_of(a, b, y, shapes.ins[ContractIn::kBias]), a.dtype, of_b, y.dtype).has_value();
  return converted + (fits ? gemm_workspace(y.shape.elements()) : 0);
}

void contract(const KernelCall& call) {
  const View &a = call.ins[ContractIn::kA], &b = call.ins[ContractIn::kB], &y = call.outs[0];
  if (is_converted(a.type, b.type)) {
    std::vector<View> ins;
    return contract(with_converted(call, ins));
  }
  const ContractLists lists = lists_of(call);
  const auto product = product_of(lists, a.dtype(), b.dtype(), y.dtype());
  const View added = added_of(call);
  if (!product) {
    const GemmEpilogue epilogue = epilogue_of(call);
    contract_slowly(call, lists, epilogue.product());
    activate(epilogue, y.dtype(), y.elements(), *call.stream);
  } else {
    const Gemm g = gemm_of(call, *product);
    if (added.data != nullptr && gemm_with(g, added.data, *call.stream)) return;
    if (!gemm(g, *call.stream)) activate(g.epilogue, y.dtype(), y.elements(), *call.stream);
  }
  if (added.data != nullptr) make_also(call, accumulate, added, ContractOut::kY, true);
}

// Contractions with few rows, as the projections of a token, alone or fused with the norm of their input.
bool contract_together(std::span<const KernelCall> calls) {
  std::optional<NormWithin> norm;
  const void* const made = calls[0].outs[0].data;
  if (calls[0].kind != "contract") {
    norm = norm_within(calls[0], kThinRows);
    if (!norm) return false;
    calls = calls.subspan(1);
  }
  std::vector<Gemm> all;
  for (const KernelCall& call : calls) {
    const View& a = call.ins[ContractIn::kA];
    const auto product = product_of(lists_of(call), a.dtype(), call.ins[ContractIn::kB].dtype(), call.outs[0].dtype());
    if (!product || added_of(call).data != nullptr || product->gemm.m == 0 || product->gemm.n == 0) return false;
    all.push_back(gemm_of(call, *product));
    const Gemm& g = all.back();
    if (norm && (g.a.data != made || g.m != norm->count || g.k != norm->width || (g.m > 1 && g.a.step != g.k)))
      return false;
  }
  return thin_gemms(all, *calls[0].stream, norm ? &*norm : nullptr);
}

}  // namespace kintsugi::KINTSUGI_GPU
