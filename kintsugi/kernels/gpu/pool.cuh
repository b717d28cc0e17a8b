// Max pooling over windows. Gradients are gathered: each position of x finds the windows that cover it and takes the
// gradients of those of which it is the first maximum, in an order that depends only on the shapes.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/windows.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

struct PoolAxis {
  int kernel = 1, stride = 1, dilation = 1, low = 0;
  int out = 1;
  Present in;

  // The position of x that tap `k` of window `o` reads, or -1.
  __device__ __forceinline__ int input(int o, int k) const {
    const int at = o * stride - low + k * dilation;
    return in.has(at) ? at : -1;
  }
  // The window whose tap `k` reads position `i`, or -1.
  __device__ __forceinline__ int window(int i, int k) const {
    const int from = i + low - k * dilation;
    return from >= 0 && from % stride == 0 && from / stride < out ? from / stride : -1;
  }
};

// x: [samples in... channels], y: [samples out... channels]
struct MaxPool {
  PoolAxis axis[kSpatial];
  int64_t inputs = 1, outputs = 1, channels = 1;  // positions per sample
  ImagePieces pieces;
  bool add = false;
};

// The largest element of a window of N channels, and the tap that reads it; -1 if the window has none. Of equal ones
// the first; NaN compares larger than any number.
template <int N>
struct Largest {
  float value[N];
  int tap[N];

  template <typename T>
  __device__ __forceinline__ void find(const MaxPool& p, const T* x, int o0, int o1, int o2) {
    GPU_UNROLL
    for (int i = 0; i < N; ++i) value[i] = -INFINITY, tap[i] = -1;
    int at = 0;
    for (int k0 = 0; k0 < p.axis[0].kernel; ++k0) {
      const int i0 = p.axis[0].input(o0, k0);
      for (int k1 = 0; k1 < p.axis[1].kernel; ++k1) {
        const int i1 = p.axis[1].input(o1, k1);
        for (int k2 = 0; k2 < p.axis[2].kernel; ++k2, ++at) {
          const int i2 = p.axis[2].input(o2, k2);
          if (i0 < 0 || i1 < 0 || i2 < 0) continue;
          const int64_t place = (static_cast<int64_t>(i0) * p.axis[1].in.size + i1) * p.axis[2].in.size + i2;
          Packed<T, N> some;
          some.load(x + place * p.channels);
          GPU_UNROLL
          for (int i = 0; i < N; ++i) {
            const float next = some[i];
            if (tap[i] >= 0 && (next <= value[i] || value[i] != value[i])) continue;
            value[i] = next, tap[i] = at;
          }
        }
      }
    }
  }
};

template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads) pool_largest(MaxPool p, const T* x, T* y) {
  for (int64_t piece = first_piece(); piece < p.pieces.count; piece += all_threads()) {
    const ImagePieces::At at = p.pieces.at(piece, N);
    Largest<N> largest;
    largest.find(p, x + at.sample * p.inputs * p.channels + at.channel, at.position[0], at.position[1], at.position[2]);
    put_run(y + piece * N, largest.value, p.add);
  }
}

template <typename T, int N>
__global__ void __launch_bounds__(kPieceThreads, 2) spread_to_largest(MaxPool p, const T* x, const T* dy, T* dx) {
  for (int64_t piece = first_piece(); piece < p.pieces.count; piece += all_threads()) {
    const ImagePieces::At at = p.pieces.at(piece, N);
    const T* const of_sample = x + at.sample * p.inputs * p.channels + at.channel;
    const T* const of_windows = dy + at.sample * p.outputs * p.channels + at.channel;
    float sum[N] = {};
    bool has = true;
    GPU_UNROLL
    for (int d = 0; d < kSpatial; ++d) has = has && p.axis[d].in.has(at.position[d]);
    for (int k0 = has ? p.axis[0].kernel - 1 : -1; k0 >= 0; --k0) {
      const int o0 = p.axis[0].window(at.position[0], k0);
      if (o0 < 0) continue;
      for (int k1 = p.axis[1].kernel - 1; k1 >= 0; --k1) {
        const int o1 = p.axis[1].window(at.position[1], k1);
        if (o1 < 0) continue;
        for (int k2 = p.axis[2].kernel - 1; k2 >= 0; --k2) {
          const int o2 = p.axis[2].window(at.position[2], k2);
          if (o2 < 0) continue;
          Largest<N> largest;
          largest.find(p, of_sample, o0, o1, o2);
          const int own = (k0 * p.axis[1].kernel + k1) * p.axis[2].kernel + k2;
          const int64_t place = (static_cast<int64_t>(o0) * p.axis[1].out + o1) * p.axis[2].out + o2;
          Packed<T, N> some;
          some.load(of_windows + place * p.channels);
          GPU_UNROLL
          for (int i = 0; i < N; ++i) sum[i] += largest.tap[i] == own ? some[i] : 0;
        }
      }
    }
    put_run(dx + piece * N, sum, p.add);
  }
}

// For pieces of `over`, x or y.
MaxPool max_pool_of(const KernelCall& call, const View& x, const View& y, const View& over, int wide) {
  MaxPool p;
  const ImageShape in = image_shape("max_pool", x.shape()), out = image_shape("max_pool", y.shape());
  size_t d = kSpatial + 2 - x.shape().rank();
  for (const auto& [dim, w] : tensor::windows_of(call.attributes)) {
    base::require(d < kSpatial, "kernel", "max_pool over \"{}\" of {}", dim, to_string(x.shape()));
    p.axis[d++] = {.kernel = static_cast<int>(w.kernel),
                   .stride = static_cast<int>(w.stride),
                   .dilation = static_cast<int>(w.dilation),
                   .low = static_cast<int>(w.low),
                   .out = static_cast<int>(y.size(dim)),
                   .in = present_of(x.size(dim), call.window_index(dim))};
  }
  p.inputs = in.positions(), p.outputs = out.positions(), p.channels = in.channels;
  p.pieces = image_pieces(over.data == x.data ? in : out, wide);
  p.add = call.accumulates(0);
  return p;
}

}  // namespace

void max_pool(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (y.elements() == 0) return;
  dispatch("max_pool", x.dtype(), [&]<typename T>(T) {
    const auto pool = [&]<int N>(std::integral_constant<int, N>) {
      const MaxPool p = max_pool_of(call, x, y, y, N);
      launch_pieces(*call.stream, p.pieces.count, pool_largest<T, N>, p, data<T>(x), data<T>(y));
    };
    with_wide_channels<T>(width(x.shape()), pool, x.data, y.data);
  });
}

void max_pool_grad(const KernelCall& call) {
  const View &x = call.ins[kernels::WindowGradIn::kX], &dy = call.ins[kernels::WindowGradIn::kDy], &dx = call.outs[0];
  if (dx.elements() == 0) return;
  dispatch("max_pool_grad", x.dtype(), [&]<typename T>(T) {
    const auto spread = [&]<int N>(std::integral_constant<int, N>) {
      const MaxPool p = max_pool_of(call, x, dy, x, N);
      launch_pieces(*call.stream, p.pieces.count, spread_to_largest<T, N>, p, data<T>(x), data<T>(dy), data<T>(dx));
    };
    with_wide_channels<T>(width(x.shape()), spread, x.data, dy.data, dx.data);
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
