#include "kintsugi/kernels/adamw8.h"

#include <cstring>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/optimizer_step.h"
#include "kintsugi/kernels/cpu/optimizers.h"
#include "kintsugi/kernels/reference/optimizers.h"

namespace kintsugi::kernels::cpu {

bool adamw8_takes(const Operands& o) {
  const auto dtype = [&](size_t i) { return o.ins[i].dtype; };
  return dtype(Adamw8In::kW) == tensor::DType::f32 && dtype(Adamw8In::kMScale) == tensor::DType::f32 &&
         is_gradient(dtype(Adamw8In::kG));
}

void adamw8(const KernelCall& call) {
  using In = Adamw8In;
  using Out = Adamw8Out;
  if (call.ins[In::kFinite].as<double>()[0] == 0) return reference::adamw8(call);
  const Adamw8Step step = adamw8_step(call);
  const int64_t n = call.ins[In::kW].elements(), blocks = call.ins[In::kMScale].elements();
  // The state of the output, which may be the operand's memory.
  const auto out = [&]<typename T>(size_t from, size_t to, T, base::Range r) {
    T* at = reinterpret_cast<T*>(call.outs[to].data);
    const T* source = reinterpret_cast<const T*>(call.ins[from].data);
    if (at != source) std::memcpy(at + r.begin, source + r.begin, static_cast<size_t>(r.size()) * sizeof(T));
    return at;
  };
  const tensor::View &g = call.ins[In::kG], &weight = call.outs[Out::kWeight];
  call.team.for_shares(blocks, 16, [&](base::Range r, int) {
    const base::Range all = {r.begin * tensor::kStateBlock, std::min(r.end * tensor::kStateBlock, n)};
    float *w = out(In::kW, Out::kW, 0.0f, all), *m_scale = out(In::kMScale, Out::kMScale, 0.0f, r),
          *v_scale = out(In::kVScale, Out::kVScale, 0.0f, r);
    uint8_t *m = out(In::kM, Out::kM, uint8_t{}, all), *v = out(In::kV, Out::kV, uint8_t{}, all);
    for (int64_t block = r.begin; block < r.end; ++block) {
      const int64_t at = block * tensor::kStateBlock, count = std::min(tensor::kStateBlock, n - at);
      const auto run = [&](const auto* gradient) {
        adamw8_block<float>(step, count, w + at, gradient + at, m + at, v + at, m_scale[block], v_scale[block]);
      };
      g.dtype() == tensor::DType::bf16 ? run(reinterpret_cast<const tensor::bf16*>(g.data))
                                       : run(reinterpret_cast<const float*>(g.data));
      if (weight.data) narrow(weight.dtype(), w + at, weight.data + at * tensor::size_of(weight.dtype()), count);
    }
  });
}

}  // namespace kintsugi::kernels::cpu
