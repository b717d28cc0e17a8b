// The activations, element by element.
#include "kintsugi/kernels/gpu/activations.h"
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// y = value(x), or dx = slope(x) dy where there is a dy; N elements at a time.
template <typename F, typename T, int N>
__global__ void map(const T* x, const T* dy, T* y, int64_t count, bool add) {
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
void apply(const KernelCall& call, bool gradient) {
  dispatch("an activation", call.ins[0].dtype(), [&]<typename T>(T) {
    const T *x = data<T>(call.ins[0]), *dy = gradient ? data<T>(call.ins[1]) : nullptr;
    T* y = data<T>(call.outs[0]);
    const int64_t count = call.outs[0].elements();
    const bool add = call.accumulates(0);
    constexpr int kN = kWide<T>;
    const int64_t wide = all_wide(x, dy, y) ? count / kN * kN : 0;
    if (wide > 0) launch(*call.stream, blocks_for(wide / kN), dim3(256), 0, map<F, T, kN>, x, dy, y, wide, add);
    if (wide < count)
      launch(*call.stream, blocks_for(count - wide), dim3(256), 0, map<F, T, 1>, x + wide,
             dy == nullptr ? dy : dy + wide, y + wide, count - wide, add);
  });
}

bool is_tanh(const KernelCall& call) {
  const std::string& form = call.attributes.text("form");
  base::require(form == "tanh" || form == "erf", "gelu", "no form \"{}\"; there are tanh, erf", form);
  return form == "tanh";
}

}  // namespace

void gelu(const KernelCall& call) {
  is_tanh(call) ? apply<GeluTanh>(call, false) : apply<GeluErf>(call, false);
}
void gelu_grad(const KernelCall& call) {
  is_tanh(call) ? apply<GeluTanh>(call, true) : apply<GeluErf>(call, true);
}
void relu(const KernelCall& call) {
  apply<Relu>(call, false);
}
void relu_grad(const KernelCall& call) {
  apply<Relu>(call, true);
}
void relu2(const KernelCall& call) {
  apply<Relu2>(call, false);
}
void relu2_grad(const KernelCall& call) {
  apply<Relu2>(call, true);
}
void silu(const KernelCall& call) {
  apply<Silu>(call, false);
}
void silu_grad(const KernelCall& call) {
  apply<Silu>(call, true);
}
void tanh(const KernelCall& call) {
  apply<Tanh>(call, false);
}
void tanh_grad(const KernelCall& call) {
  apply<Tanh>(call, true);
}

}  // namespace kintsugi::KINTSUGI_GPU
