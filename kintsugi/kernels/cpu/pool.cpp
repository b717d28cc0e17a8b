#include <algorithm>
#include <array>

#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#include "kintsugi/tensor/window.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/pool.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/pool_windows.h"
#include "kintsugi/kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

// A NaN exceeds any number.
HWY_INLINE hn::Mask<D> exceeds(V x, V best) {
  return hn::And(hn::Eq(best, best), hn::Not(hn::Le(x, best)));
}

template <typename T>
HWY_INLINE V load_some(const T* p, int64_t n) {
  return n < lanes() ? load_n(p, n) : load(p);
}
template <typename T>
HWY_INLINE void store_some(V v, T* p, int64_t n) {
  n < lanes() ? store_n(v, p, n) : store(v, p);
}

// Calls f(channel, number of channels) for each vector of channels.
template <typename F>
HWY_INLINE void for_channels(int64_t channels, const F& f) {
  for (int64_t c = 0; c < channels; c += lanes()) f(c, std::min(lanes(), channels - c));
}

}  // namespace

void max_pool_samples(const KernelCall& call, const PoolWindows& p, base::Range samples) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    for (int64_t n = samples.begin; n < samples.end; ++n) {
      const T* x = reinterpret_cast<const T*>(call.ins[0].data) + n * p.inputs * p.channels;
      T* y = reinterpret_cast<T*>(call.outs[0].data) + n * p.outputs * p.channels;
      p.for_outputs([&](int64_t o, const PoolWindows::Covered& covered) {
        for_channels(p.channels, [&](int64_t c, int64_t count) HWY_ATTR {
          V best = set(-HUGE_VALF);
          p.for_positions(covered, [&](int64_t i) HWY_ATTR {
            const V some = load_some(x + i * p.channels + c, count);
            best = hn::IfThenElse(exceeds(some, best), some, best);
          });
          store_some(best, y + o * p.channels + c, count);
        });
      });
    }
  });
}

void max_pool_grad_samples(const KernelCall& call, const PoolWindows& p, base::Range samples, float* sums) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    for (int64_t n = samples.begin; n < samples.end; ++n) {
      const T* x = reinterpret_cast<const T*>(call.ins[0].data) + n * p.inputs * p.channels;
      const T* dy = reinterpret_cast<const T*>(call.ins[1].data) + n * p.outputs * p.channels;
      T* dx = reinterpret_cast<T*>(call.outs[0].data) + n * p.inputs * p.channels;
      std::fill_n(sums, p.inputs * p.channels, 0.0f);
      p.for_outputs([&](int64_t o, const PoolWindows::Covered& covered) {
        for_channels(p.channels, [&](int64_t c, int64_t count) HWY_ATTR {
          V best = set(-HUGE_VALF), at = set(-1), number = zero();
          p.for_positions(covered, [&](int64_t i) HWY_ATTR {
            const V some = load_some(x + i * p.channels + c, count);
            const auto larger = hn::Or(exceeds(some, best), hn::Lt(at, zero()));
            best = hn::IfThenElse(larger, some, best);
            at = hn::IfThenElse(larger, number, at);
            number = hn::Add(number, set(1));
          });
          const V given = load_some(dy + o * p.channels + c, count);
          number = zero();
          p.for_positions(covered, [&](int64_t i) HWY_ATTR {
            float* sum = sums + i * p.channels + c;
            const V mine = hn::IfThenElseZero(hn::Eq(at, number), given);
            store_some(hn::Add(load_some(sum, count), mine), sum, count);
            number = hn::Add(number, set(1));
          });
        });
      });
      map([](V v) HWY_ATTR { return v; }, p.inputs * p.channels, dx, static_cast<const float*>(sums));
    }
  });
}

void average_pool_samples(const KernelCall& call, const PoolWindows& p, base::Range samples) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    for (int64_t n = samples.begin; n < samples.end; ++n) {
      const T* x = reinterpret_cast<const T*>(call.ins[0].data) + n * p.inputs * p.channels;
      T* y = reinterpret_cast<T*>(call.outs[0].data) + n * p.outputs * p.channels;
      p.for_outputs([&](int64_t o, const PoolWindows::Covered& covered) {
        const V share = set(1.0f / static_cast<float>(p.divisor(covered)));
        for_channels(p.channels, [&](int64_t c, int64_t count) HWY_ATTR {
          V sum = zero();
          p.for_positions(covered,
                          [&](int64_t i) HWY_ATTR { sum = hn::Add(sum, load_some(x + i * p.channels + c, count)); });
          store_some(hn::Mul(sum, share), y + o * p.channels + c, count);
        });
      });
    }
  });
}

void average_pool_grad_samples(const KernelCall& call, const PoolWindows& p, base::Range samples, float* sums) {
  for_type(call.outs[0].dtype(), [&]<typename T>(T) {
    for (int64_t n = samples.begin; n < samples.end; ++n) {
      const T* dy = reinterpret_cast<const T*>(call.ins[0].data) + n * p.outputs * p.channels;
      T* dx = reinterpret_cast<T*>(call.outs[0].data) + n * p.inputs * p.channels;
      std::fill_n(sums, p.inputs * p.channels, 0.0f);
      p.for_outputs([&](int64_t o, const PoolWindows::Covered& covered) {
        const V share = set(1.0f / static_cast<float>(p.divisor(covered)));
        for_channels(p.channels, [&](int64_t c, int64_t count) HWY_ATTR {
          const V given = hn::Mul(load_some(dy + o * p.channels + c, count), share);
          p.for_positions(covered, [&](int64_t i) HWY_ATTR {
            float* sum = sums + i * p.channels + c;
            store_some(hn::Add(load_some(sum, count), given), sum, count);
          });
        });
      });
      map([](V v) HWY_ATTR { return v; }, p.inputs * p.channels, dx, static_cast<const float*>(sums));
    }
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(max_pool_samples);
HWY_EXPORT(max_pool_grad_samples);
HWY_EXPORT(average_pool_samples);
HWY_EXPORT(average_pool_grad_samples);

bool pool_takes(const Operands& o) {
  return is_fast(o.outs[0].dtype) && tensor::words(o.attributes.text_or("window", "")).size() <= PoolWindows::kMost;
}

void max_pool(const KernelCall& call) {
  const PoolWindows p(call, call.ins[0].shape(), call.outs[0].shape());
  const auto samples = HWY_DYNAMIC_DISPATCH(max_pool_samples);
  call.team.for_shares(p.samples, 1, [&](base::Range r, int) { samples(call, p, r); });
}

void average_pool(const KernelCall& call) {
  const PoolWindows p(call, call.ins[0].shape(), call.outs[0].shape());
  const auto samples = HWY_DYNAMIC_DISPATCH(average_pool_samples);
  call.team.for_shares(p.samples, 1, [&](base::Range r, int) { samples(call, p, r); });
}

namespace {

// Per-thread fp32 sums of a sample.
int64_t floats_of_sample(const tensor::Shape& dx) {
  return dx[0].size == 0 ? 0 : (dx.elements() / dx[0].size + 15) / 16 * 16;
}

}  // namespace

int64_t pool_grad_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  scratch.take<float>(floats_of_sample(shapes.outs[0]->shape) * shapes.threads);
  return scratch.bytes();
}

void max_pool_grad(const KernelCall& call) {
  const PoolWindows p(call, call.outs[0].shape(), call.ins[WindowGradIn::kDy].shape());
  const int64_t size = floats_of_sample(call.outs[0].shape());
  float* sums = Scratch(call.workspace).take<float>(size * call.team.size());
  const auto samples = HWY_DYNAMIC_DISPATCH(max_pool_grad_samples);
  call.team.for_shares(p.samples, 1, [&](base::Range r, int thread) { samples(call, p, r, sums + thread * size); });
}

void average_pool_grad(const KernelCall& call) {
  const PoolWindows p(call, call.outs[0].shape(), call.ins[0].shape());
  const int64_t size = floats_of_sample(call.outs[0].shape());
  float* sums = Scratch(call.workspace).take<float>(size * call.team.size());
  const auto samples = HWY_DYNAMIC_DISPATCH(average_pool_grad_samples);
  call.team.for_shares(p.samples, 1, [&](base::Range r, int thread) { samples(call, p, r, sums + thread * size); });
}

}  // namespace kintsugi::kernels::cpu
#endif
