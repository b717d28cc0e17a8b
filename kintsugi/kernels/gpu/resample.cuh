// Linear resampling of images: average pooling over windows, adaptive pooling and upsampling, and their gradients. Each
// is y = the sum over taps of weight * x, with weights that are products over the spatial dims; an axis gives the taps
// of each position of y. Sums are in the order of the taps.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/windows.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

enum class Resampled { average, average_grad, adaptive, adaptive_grad, upsample, upsample_grad };

// A position of x and its weight; a weight of 0 if there is none.
struct Tap {
  int at = 0;
  float weight = 0;
};

// `from` positions of x contribute to `to` positions of y.
struct ResampleAxis {
  int from = 1, to = 1;
  int kernel = 1, stride = 1, dilation = 1, low = 0;
  bool excludes = false, linear = false;
  // Average pooling: the positions that windows cover. Upsampling: those of the longer value.
  Present covered;
  // Upsampling: the positions of the shorter value, within `whole` of them.
  LocalIndex shorter;
  int64_t whole = 1;

  // Average pooling: 1 / the divisor of a window.
  __device__ __forceinline__ float share(int window) const {
    if (!excludes) return 1.0f / static_cast<float>(kernel);
    int count = 0;
    for (int k = 0; k < kernel; ++k) count += covered.has(window * stride - low + k * dilation) ? 1 : 0;
    return 1.0f / static_cast<float>(count > 0 ? count : 1);
  }
  // Adaptive pooling: the range of position `o` of `outs`, over `ins` positions.
  __device__ __forceinline__ static int begin(int o, int ins, int outs) {
    return static_cast<int>(static_cast<int64_t>(o) * ins / outs);
  }
  __device__ __forceinline__ static int end(int o, int ins, int outs) {
    return static_cast<int>(((static_cast<int64_t>(o) + 1) * ins + outs - 1) / outs);
  }
  // Upsampling: the contribution of local position `i` of the shorter value to position `k` of its window
  // (kernels/taps.h).
  __device__ __forceinline__ float weight(int i, int k) const {
    const int64_t global = shorter[i];
    if (global < 0) return 0;
    if (!linear) return 1;
    const auto f = static_cast<float>(stride), at = static_cast<float>(k);
    const float distance = stride % 2 == 0 ? (at + 0.5f) / f - 1 : (at - f + 1) / f;
    if ((global == 0 && distance < 0) || (global == whole - 1 && distance > 0)) return 1;
    return distance < 0 ? 1 + distance : 1 - distance;
  }

  // Number of taps of a position of y, of which some may have no weight, and each of them.
  template <Resampled kKind>
  __device__ __forceinline__ int count(int o) const {
    switch (kKind) {
      case Resampled::average:
        return kernel;
      case Resampled::average_grad:
        return covered.has(o) ? kernel : 0;
      case Resampled::adaptive:
        return end(o, from, to) - begin(o, from, to);
      case Resampled::adaptive_grad:
        return end(o, from, to) - begin(o, from, to);
      case Resampled::upsample:
        return covered.has(o) ? (kernel + stride - 1) / stride : 0;
      case Resampled::upsample_grad:
        return shorter[o] < 0 ? 0 : kernel;
    }
    return 0;
  }
  template <Resampled kKind>
  __device__ __forceinline__ Tap tap(int o, int k) const {
    switch (kKind) {
      case Resampled::average: {
        const int at = o * stride - low + k * dilation;
        return covered.has(at) ? Tap{at, share(o)} : Tap{};
      }
      case Resampled::average_grad: {
        const int first = o + low - (kernel - 1 - k) * dilation;
        if (first < 0 || first % stride != 0 || first / stride >= from) return {};
        return {first / stride, share(first / stride)};
      }
      case Resampled::adaptive: {
        const int first = begin(o, from, to), last = end(o, from, to);
        return {first + k, 1.0f / static_cast<float>(last - first)};
      }
      case Resampled::adaptive_grad: {
        const int at = begin(o, from, to) + k;
        return {at, 1.0f / static_cast<float>(end(at, to, from) - begin(at, to, from))};
      }
      case Resampled::upsample: {
        const int at = (o + low) / stride - (kernel + stride - 1) / stride + 1 + k, within = o + low - at * stride;
        return at >= 0 && at < from && within < kernel ? Tap{at, weight(at, within)} : Tap{};
      }
      case Resampled::upsample_grad: {
        const int at = o * stride - low + k;
        return covered.has(at) ? Tap{at, weight(o, k)} : Tap{};
      }
    }
    return {};
  }
};

struct Resampling {
  ResampleAxis axis[kSpatial];
  int64_t inputs = 1, channels = 1;  // inputs: positions of x per sample
  ImagePieces pieces;                // of y
  bool add = false;
};

template <Resampled kKind, typename T, int N>
__global__ void __launch_bounds__(kPieceThreads, 2) resample(Resampling r, const T* x, T* y) {
  for (int64_t piece = first_piece(); piece < r.pieces.count; piece += all_threads()) {
    const ImagePieces::At at = r.pieces.at(piece, N);
    const T* const from = x + at.sample * r.inputs * r.channels + at.channel;
    const int taps0 = r.axis[0].template count<kKind>(at.position[0]),
              taps1 = r.axis[1].template count<kKind>(at.position[1]),
              taps2 = r.axis[2].template count<kKind>(at.position[2]);
    float sum[N] = {};
    for (int k0 = 0; k0 < taps0; ++k0) {
      const Tap t0 = r.axis[0].template tap<kKind>(at.position[0], k0);
      if (t0.weight == 0) continue;
      for (int k1 = 0; k1 < taps1; ++k1) {
        const Tap t1 = r.axis[1].template tap<kKind>(at.position[1], k1);
        if (t1.weight == 0) continue;
        for (int k2 = 0; k2 < taps2; ++k2) {
          const Tap t2 = r.axis[2].template tap<kKind>(at.position[2], k2);
          if (t2.weight == 0) continue;
          const float weight = t0.weight * t1.weight * t2.weight;
          Packed<T, N> some;
          some.load(from +
                    ((static_cast<int64_t>(t0.at) * r.axis[1].from + t1.at) * r.axis[2].from + t2.at) * r.channels);
          GPU_UNROLL
          for (int i = 0; i < N; ++i) sum[i] = fmaf(weight, some[i], sum[i]);
        }
      }
    }
    put_run(y + piece * N, sum, r.add);
  }
}

bool backward(Resampled kind) {
  return kind == Resampled::average_grad || kind == Resampled::adaptive_grad || kind == Resampled::upsample_grad;
}

Resampling resampling_of(const KernelCall& call, Resampled kind, int wide) {
  const View &x = call.ins[0], &y = call.outs[0];
  Resampling r;
  r.add = call.accumulates(0);
  const ImageShape in = image_shape(call.kind, x.shape()), out = image_shape(call.kind, y.shape());
  for (int d = 0; d < kSpatial; ++d) {
    r.axis[d].from = static_cast<int>(in.size[d]), r.axis[d].to = static_cast<int>(out.size[d]);
    // Of a dim without a window.
    r.axis[d].covered.size = std::max(r.axis[d].from, r.axis[d].to);
    r.axis[d].shorter = local_index(tensor::DimIndex(r.axis[d].covered.size));
  }
  r.inputs = in.positions(), r.channels = in.channels, r.pieces = image_pieces(out, wide);
  if (kind == Resampled::adaptive || kind == Resampled::adaptive_grad) return r;
  const bool average = kind == Resampled::average || kind == Resampled::average_grad;
  size_t d = kSpatial + 2 - x.shape().rank();
  for (const auto& [dim, w] : tensor::windows_of(call.attributes)) {
    base::require(d < kSpatial, "kernel", "{} over \"{}\" of {}", call.kind, dim, to_string(x.shape()));
    ResampleAxis& axis = r.axis[d++];
    axis.kernel = static_cast<int>(w.kernel), axis.stride = static_cast<int>(w.stride);
    axis.dilation = static_cast<int>(w.dilation), axis.low = static_cast<int>(w.low);
    const int covered = average == backward(kind) ? axis.to : axis.from;
    axis.covered = present_of(covered, call.window_index(dim));
    if (average) {
      axis.excludes = call.attributes.integer_or("exclude_padding", 0) != 0;
      continue;
    }
    axis.linear = call.attributes.text("mode") == "linear";
    axis.shorter = local_index(call.index(dim));
    axis.whole = call.attributes.integer("positions_" + dim);
  }
  return r;
}

template <Resampled kKind>
void resample_as(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  if (y.elements() == 0) return;
  base::require(x.dtype() == y.dtype(), "kernel", "{} of {} to {} on a device", call.kind, name_of(x.dtype()),
                name_of(y.dtype()));
  dispatch("resample", x.dtype(), [&]<typename T>(T) {
    const auto launch_as = [&]<int N>(std::integral_constant<int, N>) {
      const Resampling r = resampling_of(call, kKind, N);
      launch_pieces(*call.stream, r.pieces.count, resample<kKind, T, N>, r, data<T>(x), data<T>(y));
    };
    with_wide_channels<T>(width(x.shape()), launch_as, x.data, y.data);
  });
}

}  // namespace

void adaptive_pool(const KernelCall& call) {
  resample_as<Resampled::adaptive>(call);
}
void adaptive_pool_grad(const KernelCall& call) {
  resample_as<Resampled::adaptive_grad>(call);
}
void average_pool(const KernelCall& call) {
  resample_as<Resampled::average>(call);
}
void average_pool_grad(const KernelCall& call) {
  resample_as<Resampled::average_grad>(call);
}
void upsample(const KernelCall& call) {
  resample_as<Resampled::upsample>(call);
}
void upsample_grad(const KernelCall& call) {
  resample_as<Resampled::upsample_grad>(call);
}

}  // namespace kintsugi::KINTSUGI_GPU
