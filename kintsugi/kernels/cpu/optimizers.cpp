// The elementwise kernels of optimizers. A skipped update, which is rare, is left to the reference.
#include "kintsugi/kernels/cpu/optimizers.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/optimizer_step.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/reference/optimizers.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/optimizers.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

#ifndef KINTSUGI_OPTIMIZER_STEPS
#define KINTSUGI_OPTIMIZER_STEPS
namespace kintsugi::kernels::cpu {
// The scalars of a call, each in the kernels that use it.
struct StepScalars {
  float factor = 0, rate = 0, decay = 0, scale = 0;
  float beta1 = 0, beta2 = 0, correction1 = 0, correction2 = 0, epsilon = 0, momentum = 0, rho = 0;
};
}  // namespace kintsugi::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Calls f(gradient, inputs, outputs) for the elements of a range, a vector at a time. Outputs may share the memory of
// inputs.
template <size_t kIns, size_t kOuts, typename G, typename F>
HWY_INLINE void each(const G* g, const std::array<const float*, kIns>& in, const std::array<float*, kOuts>& out,
                     base::Range r, const F& f) {
  V ins[kIns], outs[kOuts];
  int64_t i = r.begin;
  for (; i + lanes() <= r.end; i += lanes()) {
    for (size_t k = 0; k < kIns; ++k) ins[k] = load(in[k] + i);
    f(load(g + i), ins, outs);
    for (size_t k = 0; k < kOuts; ++k) store(outs[k], out[k] + i);
  }
  if (i == r.end) return;
  const int64_t n = r.end - i;
  for (size_t k = 0; k < kIns; ++k) ins[k] = load_n(in[k] + i, n);
  f(load_n(g + i, n), ins, outs);
  for (size_t k = 0; k < kOuts; ++k) store_n(outs[k], out[k] + i, n);
}

// The same for operands and outputs of a call by position.
template <size_t kIns, size_t kOuts, typename F>
HWY_INLINE void each_of(const KernelCall& call, size_t g, const std::array<size_t, kIns>& ins,
                        const std::array<size_t, kOuts>& outs, base::Range r, const F& f) {
  std::array<const float*, kIns> in;
  std::array<float*, kOuts> out;
  for (size_t k = 0; k < kIns; ++k) in[k] = reinterpret_cast<const float*>(call.ins[ins[k]].data);
  for (size_t k = 0; k < kOuts; ++k) out[k] = reinterpret_cast<float*>(call.outs[outs[k]].data);
  const tensor::View& gradient = call.ins[g];
  if (gradient.dtype() == tensor::DType::bf16)
    each(reinterpret_cast<const tensor::bf16*>(gradient.data), in, out, r, f);
  else
    each(reinterpret_cast<const float*>(gradient.data), in, out, r, f);
}

void lion_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  each_of<2, 2>(call, LionIn::kG, {LionIn::kW, LionIn::kM}, {LionOut::kW, LionOut::kM}, r,
                [&](V g, const V* in, V* out) HWY_ATTR {
                  g = hn::Mul(g, set(s.factor));
                  const V one = set(1.0f), w = in[0], m = in[1];
                  const V c = hn::MulAdd(set(s.beta1), m, hn::Mul(set(1.0f - s.beta1), g));
                  const V sign =
                      hn::IfThenElse(hn::Gt(c, zero()), one, hn::IfThenElse(hn::Lt(c, zero()), hn::Neg(one), zero()));
                  out[0] = hn::NegMulAdd(set(s.rate), hn::MulAdd(set(s.decay), w, sign), w);
                  out[1] = hn::MulAdd(set(s.beta2), m, hn::Mul(set(1.0f - s.beta2), g));
                });
}

void adadelta_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  using In = AdadeltaIn;
  using Out = AdadeltaOut;
  each_of<3, 3>(call, In::kG, {In::kW, In::kV, In::kD}, {Out::kW, Out::kV, Out::kD}, r,
                [&](V g, const V* in, V* out) HWY_ATTR {
                  const V w = in[0], epsilon = set(s.epsilon), rest = set(1.0f - s.rho);
                  g = hn::MulAdd(set(s.decay), w, hn::Mul(g, set(s.factor)));
                  const V v = hn::MulAdd(set(s.rho), in[1], hn::Mul(rest, hn::Mul(g, g)));
                  const V roots = hn::Div(hn::Sqrt(hn::Add(in[2], epsilon)), hn::Sqrt(hn::Add(v, epsilon)));
                  const V step = hn::Mul(roots, g);
                  out[0] = hn::NegMulAdd(set(s.rate), step, w);
                  out[1] = v;
                  out[2] = hn::MulAdd(set(s.rho), in[2], hn::Mul(rest, hn::Mul(step, step)));
                });
}

void adam_direction_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  using In = AdamwIn;
  using Out = AdamDirectionOut;
  each_of<3, 3>(call, In::kG, {In::kW, In::kM, In::kV}, {Out::kM, Out::kV, Out::kU}, r,
                [&](V g, const V* in, V* out) HWY_ATTR {
                  g = hn::Mul(g, set(s.factor));
                  const V m = hn::MulAdd(set(s.beta1), in[1], hn::Mul(set(1.0f - s.beta1), g));
                  const V v = hn::MulAdd(set(s.beta2), in[2], hn::Mul(set(1.0f - s.beta2), hn::Mul(g, g)));
                  const V root = hn::Add(hn::Sqrt(hn::Mul(v, set(s.correction2))), set(s.epsilon));
                  out[0] = m, out[1] = v;
                  out[2] = hn::MulAdd(set(s.decay), in[0], hn::Div(hn::Mul(m, set(s.correction1)), root));
                });
}

void apply_direction_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  using In = ApplyDirectionIn;
  each_of<1, 1>(call, In::kU, {In::kW}, {ApplyDirectionOut::kW}, r, [&](V u, const V* in, V* out) HWY_ATTR {
    const V step = hn::MulAdd(set(s.scale), u, hn::Mul(set(s.rate * s.decay), in[0]));
    out[0] = hn::Sub(in[0], step);
  });
}

void lars_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  using In = LarsIn;
  each_of<2, 2>(call, In::kG, {In::kW, In::kM}, {SgdOut::kW, SgdOut::kM}, r, [&](V g, const V* in, V* out) HWY_ATTR {
    const V gradient = hn::MulAdd(set(s.decay), in[0], hn::Mul(g, set(s.factor)));
    const V m = hn::MulAdd(set(s.momentum), in[1], hn::Mul(set(s.scale), gradient));
    out[0] = hn::Sub(in[0], m), out[1] = m;
  });
}

void muon_momentum_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  using In = MuonMomentumIn;
  each_of<1, 2>(call, In::kG, {In::kM}, {0, 1}, r, [&](V g, const V* in, V* out) HWY_ATTR {
    const V some = hn::Mul(set((1.0f - s.momentum) * s.factor), g);
    const V m = hn::MulAdd(set(s.momentum), in[0], some);
    out[0] = m, out[1] = hn::MulAdd(set(s.momentum), m, some);
  });
}

void moving_average_part(const KernelCall& call, const StepScalars& s, base::Range r) {
  each_of<1, 1>(call, 1, {0}, {0}, r, [&](V w, const V* in, V* out) HWY_ATTR {
    out[0] = hn::MulAdd(set(s.decay), in[0], hn::Mul(set(1.0f - s.decay), w));
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(lion_part);
HWY_EXPORT(adadelta_part);
HWY_EXPORT(adam_direction_part);
HWY_EXPORT(apply_direction_part);
HWY_EXPORT(lars_part);
HWY_EXPORT(muon_momentum_part);
HWY_EXPORT(moving_average_part);

namespace {

double one_of(const KernelCall& call, size_t i) {
  return call.ins[i].as<double>()[0];
}
float attribute(const KernelCall& call, std::string_view name) {
  return static_cast<float>(call.attributes.number(name));
}

// Runs part(call, scalars, range) over all elements. The output at `weight`, if the call has it, is the first output
// in another dtype.
template <typename Part>
void in_pieces(const KernelCall& call, const StepScalars& s, size_t weight, const Part& part) {
  constexpr int64_t kPiece = 2048;
  const tensor::View* narrowed = weight < call.outs.size() && call.outs[weight].data ? &call.outs[weight] : nullptr;
  call.team.for_shares(call.outs[0].elements(), 4096, [&](base::Range r, int) {
    // A piece at a time, so that the conversion finds it in the cache.
    for (int64_t begin = r.begin; begin < r.end; begin += kPiece) {
      const base::Range piece = {begin, std::min(begin + kPiece, r.end)};
      part(call, s, piece);
      if (narrowed)
        narrow(narrowed->dtype(), reinterpret_cast<const float*>(call.outs[0].data) + begin,
               narrowed->data + begin * tensor::size_of(narrowed->dtype()), piece.size());
    }
  });
}

constexpr size_t kNoWeight = ~size_t{0};

}  // namespace

bool optimizer_takes(const Operands& o) {
  for (size_t i = 0; i < o.ins.size(); ++i) {
    if (!o.ins.has(i)) continue;
    const tensor::Type& type = o.ins[i];
    if (type.shape.rank() > 0 && !is_gradient(type.dtype)) return false;
  }
  for (size_t i = 0; i < o.outs.size(); ++i)
    if (o.outs.has(i) && !is_fast(o.outs[i].dtype)) return false;
  return o.outs[0].dtype == tensor::DType::f32;
}

void lion(const KernelCall& call) {
  if (one_of(call, LionIn::kFinite) == 0) return reference::lion(call);
  const StepScalars s = {.factor = static_cast<float>(one_of(call, LionIn::kFactor)),
                         .rate = static_cast<float>(rate_of(call)),
                         .decay = attribute(call, "weight_decay"),
                         .beta1 = attribute(call, "beta1"),
                         .beta2 = attribute(call, "beta2")};
  in_pieces(call, s, LionOut::kWeight, HWY_DYNAMIC_DISPATCH(lion_part));
}

void adadelta(const KernelCall& call) {
  if (one_of(call, AdadeltaIn::kFinite) == 0) return reference::adadelta(call);
  const StepScalars s = {.factor = static_cast<float>(one_of(call, AdadeltaIn::kFactor)),
                         .rate = static_cast<float>(rate_of(call)),
                         .decay = attribute(call, "weight_decay"),
                         .epsilon = attribute(call, "epsilon"),
                         .rho = attribute(call, "rho")};
  in_pieces(call, s, AdadeltaOut::kWeight, HWY_DYNAMIC_DISPATCH(adadelta_part));
}

void adam_direction(const KernelCall& call) {
  using In = AdamwIn;
  if (one_of(call, In::kFinite) == 0) return reference::adam_direction(call);
  const double beta1 = call.attributes.number("beta1"), beta2 = call.attributes.number("beta2"),
               t = one_of(call, In::kUpdates) + 1;
  const StepScalars s = {.factor = static_cast<float>(one_of(call, In::kFactor)),
                         .decay = attribute(call, "weight_decay"),
                         .beta1 = static_cast<float>(beta1),
                         .beta2 = static_cast<float>(beta2),
                         .correction1 = static_cast<float>(1 / (1 - std::pow(beta1, t))),
                         .correction2 = static_cast<float>(1 / (1 - std::pow(beta2, t))),
                         .epsilon = attribute(call, "epsilon")};
  in_pieces(call, s, kNoWeight, HWY_DYNAMIC_DISPATCH(adam_direction_part));
}

void apply_direction(const KernelCall& call) {
  if (one_of(call, ApplyDirectionIn::kFinite) == 0) return reference::apply_direction(call);
  const bool decayed = call.attributes.integer_or("decay_in_direction", 0) != 0;
  const StepScalars s = {.rate = static_cast<float>(rate_of(call)),
                         .decay = decayed ? 0.0f : attribute(call, "weight_decay"),
                         .scale = static_cast<float>(rate_of(call) * direction_scale(call))};
  in_pieces(call, s, ApplyDirectionOut::kWeight, HWY_DYNAMIC_DISPATCH(apply_direction_part));
}

void lars(const KernelCall& call) {
  if (one_of(call, LarsIn::kFinite) == 0) return reference::lars(call);
  const double factor = one_of(call, LarsIn::kFactor);
  const StepScalars s = {.factor = static_cast<float>(factor),
                         .decay = attribute(call, "weight_decay"),
                         .scale = static_cast<float>(rate_of(call) * lars_scale(call, factor)),
                         .momentum = attribute(call, "momentum")};
  in_pieces(call, s, SgdOut::kWeight, HWY_DYNAMIC_DISPATCH(lars_part));
}

void muon_momentum(const KernelCall& call) {
  if (one_of(call, MuonMomentumIn::kFinite) == 0) return reference::muon_momentum(call);
  const StepScalars s = {.factor = static_cast<float>(one_of(call, MuonMomentumIn::kFactor)),
                         .momentum = attribute(call, "momentum")};
  in_pieces(call, s, kNoWeight, HWY_DYNAMIC_DISPATCH(muon_momentum_part));
}

void moving_average(const KernelCall& call) {
  if (one_of(call, 2) == 0) return reference::moving_average(call);
  in_pieces(call, {.decay = attribute(call, "ema_decay")}, kNoWeight, HWY_DYNAMIC_DISPATCH(moving_average_part));
}

}  // namespace kintsugi::kernels::cpu
#endif
