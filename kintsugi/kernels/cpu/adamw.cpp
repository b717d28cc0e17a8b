#include <cmath>
#include <utility>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/optimizer_step.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/kernels/optimizer_operands.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/adamw.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

template <typename T, typename G, bool kCoupled>
void adamw_as(const KernelCall& call, const AdamStep& s, base::Range r) {
  using In = AdamwIn;
  using Out = AdamwOut;
  const auto out = [&](size_t i) { return reinterpret_cast<float*>(call.outs[i].data); };
  const auto in = [&](size_t i) { return reinterpret_cast<const float*>(call.ins[i].data); };
  const G* gradient = reinterpret_cast<const G*>(call.ins[In::kG].data);
  const V one = set(1.0f), beta1 = set(s.beta1), beta2 = set(s.beta2), rate = set(s.rate);
  const V rest1 = hn::Sub(one, beta1), rest2 = hn::Sub(one, beta2);
  const auto step = [&](V w, V g, V& m, V& v) HWY_ATTR {
    g = hn::Mul(g, set(s.factor));
    if constexpr (kCoupled) g = hn::MulAdd(set(s.decay), w, g);
    m = hn::MulAdd(beta1, m, hn::Mul(rest1, g));
    v = hn::MulAdd(beta2, v, hn::Mul(rest2, hn::Mul(g, g)));
    const V root = hn::Add(hn::Sqrt(hn::Mul(v, set(s.correction2))), set(s.epsilon));
    V update = hn::Div(hn::Mul(m, set(s.correction1)), root);
    if constexpr (!kCoupled) update = hn::MulAdd(set(s.decay), w, update);
    return hn::NegMulAdd(rate, update, w);
  };
  T* weight = reinterpret_cast<T*>(call.outs[Out::kWeight].data);  // or null
  int64_t i = r.begin;
  for (; i + lanes() <= r.end; i += lanes()) {
    V m = load(in(In::kM) + i), v = load(in(In::kV) + i);
    const V w = step(load(in(In::kW) + i), load(gradient + i), m, v);
    store(w, out(Out::kW) + i), store(m, out(Out::kM) + i), store(v, out(Out::kV) + i);
    if (weight) store(w, weight + i);
  }
  if (i == r.end) return;
  const int64_t n = r.end - i;
  V m = load_n(in(In::kM) + i, n), v = load_n(in(In::kV) + i, n);
  const V w = step(load_n(in(In::kW) + i, n), load_n(gradient + i, n), m, v);
  store_n(w, out(Out::kW) + i, n), store_n(m, out(Out::kM) + i, n), store_n(v, out(Out::kV) + i, n);
  if (weight) store_n(w, weight + i, n);
}

void adamw_part(const KernelCall& call, const AdamStep& s, base::Range r) {
  const tensor::View& weight = call.outs[AdamwOut::kWeight];
  const bool narrow = call.ins[AdamwIn::kG].dtype() == tensor::DType::bf16;
  for_type(weight.data ? weight.dtype() : tensor::DType::f32, [&]<typename T>(T) {
    const auto with = [&]<typename G>(G) {
      s.coupled ? adamw_as<T, G, true>(call, s, r) : adamw_as<T, G, false>(call, s, r);
    };
    narrow ? with(tensor::bf16()) : with(0.0f);
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(adamw_part);

namespace {

// Skipped: every output equals its input.
void keep_state(const KernelCall& call) {
  using In = AdamwIn;
  using Out = AdamwOut;
  constexpr std::pair<size_t, size_t> kSame[] = {
      {Out::kW, In::kW}, {Out::kM, In::kM}, {Out::kV, In::kV}, {Out::kWeight, In::kW}};
  for (const auto& [out, in] : kSame) {
    const tensor::View &from = call.ins[in], &to = call.outs[out];
    const float* w = reinterpret_cast<const float*>(from.data);
    if (!to.data || to.data == from.data) continue;
    call.team.for_shares(to.elements(), 4096, [&](base::Range r, int) {
      narrow(to.dtype(), w + r.begin, to.data + r.begin * tensor::size_of(to.dtype()), r.size());
    });
  }
}

}  // namespace

bool adamw_takes(const Operands& o) {
  for (size_t i : {AdamwIn::kW, AdamwIn::kM, AdamwIn::kV})
    if (o.ins[i].dtype != tensor::DType::f32) return false;
  if (!is_gradient(o.ins[AdamwIn::kG].dtype)) return false;
  return !o.outs.has(AdamwOut::kWeight) || is_fast(o.outs[AdamwOut::kWeight].dtype);
}

void adamw(const KernelCall& call) {
  using In = AdamwIn;
  const auto scalar = [&](size_t i) { return call.ins[i].as<double>()[0]; };
  const double t = scalar(In::kUpdates) + 1;
  const double beta1 = call.attributes.number("beta1"), beta2 = call.attributes.number("beta2");
  if (scalar(In::kFinite) == 0) return keep_state(call);
  const AdamStep step{.factor = static_cast<float>(scalar(In::kFactor)),
                      .beta1 = static_cast<float>(beta1),
                      .beta2 = static_cast<float>(beta2),
                      .correction1 = static_cast<float>(1 / (1 - std::pow(beta1, t))),
                      .correction2 = static_cast<float>(1 / (1 - std::pow(beta2, t))),
                      .epsilon = static_cast<float>(call.attributes.number("epsilon")),
                      .decay = static_cast<float>(call.attributes.number("weight_decay")),
                      .rate = static_cast<float>(rate_of(call)),
                      .coupled = call.attributes.integer_or("coupled_decay", 0) != 0};
  const auto part = HWY_DYNAMIC_DISPATCH(adamw_part);
  call.team.for_shares(call.ins[In::kW].elements(), 4096, [&](base::Range r, int) { part(call, step, r); });
}

}  // namespace kintsugi::kernels::cpu
#endif
