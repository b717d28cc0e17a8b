#include <algorithm>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/optimizer_step.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/optimizer_operands.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/sgd.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

struct Momentum {
  MomentumStep step;
  HWY_INLINE V operator()(V m, V g, V w) const {
    return hn::MulAdd(set(step.momentum), m, hn::MulAdd(set(step.decay), w, hn::Mul(g, set(step.factor))));
  }
};
struct Descent {
  float rate;
  HWY_INLINE V operator()(V w, V m) const { return hn::NegMulAdd(set(rate), m, w); }
};
// Nesterov: along the gradient and the new momentum.
struct NesterovDescent {
  MomentumStep step;
  HWY_INLINE V operator()(V w, V m, V g) const {
    const V gradient = hn::MulAdd(set(step.decay), w, hn::Mul(g, set(step.factor)));
    return hn::NegMulAdd(set(step.rate), hn::MulAdd(set(step.momentum), m, gradient), w);
  }
};

void sgd_part(const KernelCall& call, const MomentumStep& step, base::Range r) {
  using In = SgdIn;
  using Out = SgdOut;
  const auto in = [&](size_t i) { return reinterpret_cast<const float*>(call.ins[i].data) + r.begin; };
  const auto out = [&](size_t i) { return reinterpret_cast<float*>(call.outs[i].data) + r.begin; };
  const tensor::View& g = call.ins[In::kG];
  const auto momentum = [&]<typename G>(const G* gradient) {
    map(Momentum{step}, r.size(), out(Out::kM), in(In::kM), gradient + r.begin, in(In::kW));
    if (step.nesterov)
      map(NesterovDescent{step}, r.size(), out(Out::kW), in(In::kW), static_cast<const float*>(out(Out::kM)),
          gradient + r.begin);
  };
  g.dtype() == tensor::DType::bf16 ? momentum(reinterpret_cast<const tensor::bf16*>(g.data))
                                   : momentum(reinterpret_cast<const float*>(g.data));
  if (!step.nesterov)
    map(Descent{step.rate}, r.size(), out(Out::kW), in(In::kW), static_cast<const float*>(out(Out::kM)));
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(sgd_part);

namespace {
constexpr int64_t kPiece = 2048;  // elements
}

bool sgd_takes(const Operands& o) {
  for (size_t i : {SgdIn::kW, SgdIn::kM})
    if (o.ins[i].dtype != tensor::DType::f32) return false;
  if (!is_gradient(o.ins[SgdIn::kG].dtype)) return false;
  return !o.outs.has(SgdOut::kWeight) || is_fast(o.outs[SgdOut::kWeight].dtype);
}

void sgd(const KernelCall& call) {
  using In = SgdIn;
  using Out = SgdOut;
  const auto scalar = [&](size_t i) { return call.ins[i].as<double>()[0]; };
  const auto floats = [](const tensor::View& v) { return reinterpret_cast<float*>(v.data); };
  const bool moves = scalar(In::kFinite) != 0;
  const MomentumStep step{.momentum = static_cast<float>(call.attributes.number("momentum")),
                          .factor = static_cast<float>(scalar(In::kFactor)),
                          .decay = static_cast<float>(call.attributes.number("weight_decay")),
                          .rate = static_cast<float>(rate_of(call)),
                          .nesterov = call.attributes.integer_or("nesterov", 0) != 0};
  const auto part = HWY_DYNAMIC_DISPATCH(sgd_part);
  // A piece at a time, so that the next pass finds in the cache what the previous one wrote.
  const auto piece = [&](base::Range r) {
    if (moves) {
      part(call, step, r);
    } else {
      narrow(tensor::DType::f32, floats(call.ins[In::kW]) + r.begin, call.outs[Out::kW].data + r.begin * 4, r.size());
      narrow(tensor::DType::f32, floats(call.ins[In::kM]) + r.begin, call.outs[Out::kM].data + r.begin * 4, r.size());
    }
    const tensor::View& weight = call.outs[Out::kWeight];
    if (!weight.data) return;
    narrow(weight.dtype(), floats(call.outs[Out::kW]) + r.begin,
           weight.data + r.begin * tensor::size_of(weight.dtype()), r.size());
  };
  call.team.for_shares(call.ins[In::kW].elements(), 4096, [&](base::Range r, int) {
    for (int64_t begin = r.begin; begin < r.end; begin += kPiece) piece({begin, std::min(begin + kPiece, r.end)});
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
