// The activations, element by element.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Hendrycks, Gimpel 2016, "Gaussian error linear units", section 2.
struct GeluErf {
  __device__ static float value(float x) { return 0.5f * x * (1 + erff(x * 0.70710678f)); }
  __device__ static float slope(float x) {
    return 0.5f * (1 + erff(x * 0.70710678f)) + x * 0.39894228f * expf(-0.5f * x * x);
  }
};
// The approximation of the same paper: 0.5 x (1 + tanh(u)), u = sqrt(2 / pi) (x + 0.044715 x^3).
struct GeluTanh {
  __device__ static float value(float x) { return 0.5f * x * (1 + tanhf(0.79788456f * (x + 0.044715f * x * x * x))); }
  __device__ static float slope(float x) {
    const float t = tanhf(0.79788456f * (x + 0.044715f * x * x * x));
    return 0.5f * (1 + t) + 0.5f * x * (1 - t * t) * 0.79788456f * (1 + 0.134145f * x * x);
  }
};
struct Silu {
  __device__ static float value(float x) { return x / (1 + expf(-x)); }
  __device__ static float slope(float x) {
    const float s = 1 / (1 + expf(-x));
    return s * (1 + x * (1 - s));
  }
};
struct Relu {
  __device__ static float value(float x) { return x > 0 ? x : 0; }
  __device__ static float slope(float x) { return x > 0 ? 1 : 0; }
};
// So et al. 2021, "Primer", section 4.
struct Relu2 {
  __device__ static float value(float x) { return x > 0 ? x * x : 0; }
  __device__ static float slope(float x) { return x > 0 ? 2 * x : 0; }
};
struct Tanh {
  __device__ static float value(float x) { return tanhf(x); }
  __device__ static float slope(float x) {
    const float t = tanhf(x);
    return 1 - t * t;
  }
};

// y = value(x), or dx = slope(x) dy where there is a dy; N elements at a time.
template <typename F, typename T, int N>
__global__ void map(const T* x, const T* dy, T* y, int64_t count, bool add) {
  for (int64_t at = first_piece() * N; at + N <= count; at += all_threads() * N) {
    const auto in = *reinterpret_cast<const Vec<T, N>*>(x + at);
    Vec<T, N> slope = {}, out = {};
    if (dy != nullptr) slope = *reinterpret_cast<const Vec<T, N>*>(dy + at);
    if (add) out = *reinterpret_cast<const Vec<T, N>*>(y + at);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      const float u = widen(in[i]);
      const float made = dy == nullptr ? F::value(u) : F::slope(u) * widen(slope[i]);
      put(&out[i], made, add);
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
