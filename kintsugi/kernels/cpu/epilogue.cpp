#include "kintsugi/kernels/cpu/epilogue.h"

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/epilogue.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/activation-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

template <typename A>
void apply_function(const Epilogue& e, int64_t first, int64_t rows, int64_t step, int64_t columns) {
  for_type(e.dtype, [&]<typename T>(T) {
    const T* x = reinterpret_cast<const T*>(e.x) + first;
    T* y = reinterpret_cast<T*>(e.y) + first;
    for (int64_t i = 0; i < rows; ++i, x += step, y += step) {
      if (e.slope) {
        map(SlopeTimes<A>(), columns, y, x, y);
      } else {
        map(ValueOf<A>(), columns, y, x);
      }
    }
  });
}

void apply_epilogue(const Epilogue& e, int64_t first, int64_t rows, int64_t step, int64_t columns) {
  switch (e.function) {
    case Epilogue::Function::none:
      return;
    case Epilogue::Function::gelu_tanh:
      return apply_function<GeluTanh>(e, first, rows, step, columns);
    case Epilogue::Function::gelu_erf:
      return apply_function<GeluErf>(e, first, rows, step, columns);
    case Epilogue::Function::silu:
      return apply_function<Silu>(e, first, rows, step, columns);
    case Epilogue::Function::relu:
      return apply_function<Relu>(e, first, rows, step, columns);
    case Epilogue::Function::relu2:
      return apply_function<Relu2>(e, first, rows, step, columns);
    case Epilogue::Function::tanh:
      return apply_function<Tanh>(e, first, rows, step, columns);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include "kintsugi/kernels/operands.h"

namespace kintsugi::kernels::cpu {
namespace {

using Function = Epilogue::Function;

struct Named {
  std::string_view operation;
  Function function;
};
constexpr Named kFunctions[] = {
    {"silu", Function::silu}, {"relu", Function::relu}, {"relu2", Function::relu2}, {"tanh", Function::tanh}};

Function function_of(std::string_view operation, const tensor::Attributes& attributes) {
  if (operation.ends_with("_grad")) operation.remove_suffix(5);
  if (operation == "gelu") return attributes.text("form") == "tanh" ? Function::gelu_tanh : Function::gelu_erf;
  for (const Named& named : kFunctions)
    if (named.operation == operation) return named.function;
  throw base::InternalError("contract", "no epilogue \"{}\"", operation);
}

}  // namespace

Epilogue Epilogue::at(int64_t elements) const {
  Epilogue moved = *this;
  const int64_t bytes = elements * tensor::size_of(dtype);
  if (x) moved.x += bytes;
  moved.y += bytes;
  return moved;
}

Epilogue epilogue_of(const KernelCall& call) {
  const tensor::View &y = call.outs[ContractOut::kY], &kept = call.outs[ContractOut::kX],
                     &taken = call.ins[ContractIn::kX];
  Epilogue e = {.dtype = y.dtype(), .x = y.data, .y = y.data};
  if (!call.attributes.has("epilogue")) return e;
  e.function = function_of(call.attributes.text("epilogue"), call.attributes);
  e.slope = taken.data != nullptr;
  if (e.slope || kept.data) e.x = e.slope ? taken.data : kept.data;
  return e;
}

HWY_EXPORT(apply_epilogue);

void apply(const Epilogue& e, int64_t first, int64_t rows, int64_t step, int64_t columns) {
  HWY_DYNAMIC_DISPATCH(apply_epilogue)(e, first, rows, step, columns);
}

}  // namespace kintsugi::kernels::cpu
#endif
