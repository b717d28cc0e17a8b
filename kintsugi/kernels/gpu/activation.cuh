// Elementwise activations.
#include "kintsugi/kernels/gpu/activations.h"
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// y = value(x), or dx = slope(x) dy if dy is given; N elements at a time.
template <typename F, typename T, int N>
__global__ void __launch_bounds__(kPieceThreads) map(const T* x, const T* dy, T* y, int64_t count, bool add) {
  for (int64_t at = first_piece() * N; at + N <= count; at += all_threads() * N) {
    const auto in = *reinterpret_cast<const Vec<T, N>*>(x + at);
    Vec<T, N> dy_run = {}, out = {};
    if (dy != nullptr) dy_run = *reinterpret_cast<const Vec<T, N>*>(dy + at);
    if (add) out = *reinterpret_cast<const Vec<T, N>*>(y + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      if (dy == nullptr) {
        put(&out[i], F::value(widen(in[i])), add);
      } else {
        float value, slope;
        F::both(widen(in[i]), value, slope);
        put(&out[i], slope * widen(dy_run[i]), add);
      }
    }
    *reinterpret_cast<Vec<T, N>*>(y + at) = out;
  }
}

template <typename F>
void apply(device::Stream& stream, DType dtype, const void* from, const void* dy_from, void* to, int64_t count,
           bool add) {
  dispatch("an activation", dtype, [&]<typename T>(T) {
    const T *x = static_cast<const T*>(from), *dy = static_cast<const T*>(dy_from);
    T* y = static_cast<T*>(to);
    constexpr int kN = kWide<T>;
    const int64_t wide = all_wide(x, dy, y) ? count / kN * kN : 0;
    if (wide > 0) launch_pieces(stream, wide / kN, map<F, T, kN>, x, dy, y, wide, add);
    if (wide < count)
      launch_pieces(stream, count - wide, map<F, T, 1>, x + wide, dy == nullptr ? dy : dy + wide, y + wide,
                    count - wide, add);
  });
}

void apply(const KernelCall& call, GemmFunction function, bool gradient) {
  const View &x = call.ins[0], &y = call.outs[0];
  with_function(function, [&]<typename F>(F) {
    apply<F>(*call.stream, x.dtype(), x.data, gradient ? call.ins[1].data : nullptr, y.data, y.elements(),
             call.accumulates(0));
  });
}

// y = x where positive, else slope * x; or dx = dy times the derivative, if dy is given. N elements at a time.
template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads)
    leak(const T* x, const T* dy, T* y, float slope, int64_t count, bool add) {
  for (int64_t at = first_piece() * N; at + N <= count; at += all_threads() * N) {
    Packed<T, N> in, slopes = {};
    in.load(x + at);
    if (dy != nullptr) slopes.load(dy + at);
    float made[N];
    GPU_UNROLL
    for (int i = 0; i < N; ++i) made[i] = (dy == nullptr ? in[i] : slopes[i]) * (in[i] > 0 ? 1 : slope);
    put_run(y + at, made, add);
  }
}

void apply_leak(const KernelCall& call, const View& dy) {
  const View &x = call.ins[0], &y = call.outs[0];
  const auto slope = static_cast<float>(call.attributes.number("slope"));
  dispatch("leaky_relu", x.dtype(), [&]<typename T>(T) {
    const T *from = data<T>(x), *of = data<T>(dy);
    T* to = data<T>(y);
    constexpr int kN = kWide<T>;
    const int64_t count = y.elements(), wide = all_wide(from, of, to) ? count / kN * kN : 0;
    if (wide > 0) launch_pieces(*call.stream, wide / kN, leak<T, kN>, from, of, to, slope, wide, call.accumulates(0));
    if (wide < count)
      launch_pieces(*call.stream, count - wide, leak<T, 1>, from + wide, of == nullptr ? of : of + wide, to + wide,
                    slope, count - wide, call.accumulates(0));
  });
}

GemmFunction gelu_of(const KernelCall& call) {
  const std::string& form = call.attributes.text("form");
  base::require(form == "tanh" || form == "erf", "gelu", "no form \"{}\"; there are tanh, erf", form);
  return form == "tanh" ? GemmFunction::gelu_tanh : GemmFunction::gelu_erf;
}

}  // namespace

void activate(const GemmEpilogue& e, DType dtype, int64_t count, device::Stream& stream) {
  with_function(e.function,
                [&]<typename F>(F) { apply<F>(stream, dtype, e.x, e.slope ? e.y : nullptr, e.y, count, false); });
}

void gelu(const KernelCall& call) {
  apply(call, gelu_of(call), false);
}
void gelu_grad(const KernelCall& call) {
  apply(call, gelu_of(call), true);
}
void leaky_relu(const KernelCall& call) {
  apply_leak(call, {});
}
void leaky_relu_grad(const KernelCall& call) {
  apply_leak(call, call.ins[1]);
}
void relu(const KernelCall& call) {
  apply(call, GemmFunction::relu, false);
}
void relu_grad(const KernelCall& call) {
  apply(call, GemmFunction::relu, true);
}
void relu2(const KernelCall& call) {
  apply(call, GemmFunction::relu2, false);
}
void relu2_grad(const KernelCall& call) {
  apply(call, GemmFunction::relu2, true);
}
void silu(const KernelCall& call) {
  apply(call, GemmFunction::silu, false);
}
void silu_grad(const KernelCall& call) {
  apply(call, GemmFunction::silu, true);
}
void tanh(const KernelCall& call) {
  apply(call, GemmFunction::tanh, false);
}
void tanh_grad(const KernelCall& call) {
  apply(call, GemmFunction::tanh, true);
}

}  // namespace kintsugi::KINTSUGI_GPU
