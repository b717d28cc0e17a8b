// Values scaled by a factor for each channel, or for each sample (stochastic depth), and the gradient of the former.
#include "kintsugi/kernels/gpu/channels.h"
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

int64_t channel_scale_sums_workspace(const KernelShapes&);

namespace {

struct ScaledChannels {
  AnyData gamma;

  template <int N>
  struct Of {
    float by[N];
    __device__ __forceinline__ float value(int i, float x, float) const { return x * by[i]; }
  };
  template <int N>
  __device__ __forceinline__ Of<N> of(int64_t, int64_t channel) const {
    Of<N> made;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) made.by[i] = load_one(gamma, channel + i);
    return made;
  }
};

struct JoinProducts {
  const ChannelSum* partial;  // [slices channels]
  int64_t slices, channels;
  AnyData dgamma;
  bool add;

  __device__ int64_t items(int64_t) const { return slices; }
  __device__ ChannelSum term(int64_t channel, int64_t slice) const { return partial[slice * channels + channel]; }
  __device__ void put(int64_t channel, const ChannelSum& sum) const { put_one(dgamma, channel, sum.first, add); }
};

// The mask is that of `dropout` for a value [batch].
struct KeptSamples {
  std::array<uint32_t, 2> key;
  uint32_t threshold;
  float factor;
  LocalIndex index;
  int64_t first;  // position in the global batch
  const Numbers* later;

  template <int N>
  struct Of {
    float by;
    __device__ __forceinline__ float value(int, float x, float) const { return by == 0 ? 0 : x * by; }
  };
  template <int N>
  __device__ __forceinline__ Of<N> of(int64_t sample, int64_t) const {
    const int64_t at = index[sample];
    if (at < 0) return {0};
    const int64_t position = first + at;
    const auto words =
        kernels::random_block(key, static_cast<uint64_t>(later->step), static_cast<uint64_t>(position) >> 2);
    const uint32_t low = (position & 1) != 0 ? words[1] : words[0], high = (position & 1) != 0 ? words[3] : words[2];
    const uint32_t word = (position & 2) != 0 ? high : low;
    return {word >= threshold ? factor : 0};
  }
};

}  // namespace

void channel_scale(const KernelCall& call) {
  const View& x = call.ins[0];
  launch_map(call, ScaledChannels{any_data("channel_scale", call.ins[1])}, channel_rows(x.shape(), false), x, {},
             call.outs[0]);
}

int64_t channel_scale_sums_workspace(const KernelShapes& shapes) {
  const tensor::Type& x = *shapes.ins[0];
  return channel_sums(channel_rows(x.shape, false), x.dtype).bytes();
}

void channel_scale_sums(const KernelCall& call) {
  const View& x = call.ins[0];
  auto* const partial = reinterpret_cast<ChannelSum*>(call.workspace.data());
  const ChannelRows rows = channel_rows(x.shape(), false);
  const ChannelSums plan = launch_channel_sums<true>(call, rows, {}, x, call.ins[1], partial);
  launch_join(call,
              JoinProducts{partial, plan.slices, rows.channels, any_data("channel_scale_sums", call.outs[0]),
                           call.accumulates(0)},
              rows.channels);
}

void drop_path(const KernelCall& call) {
  const View& x = call.ins[0];
  const double p = call.attributes.number("p");
  const KeptSamples f = {.key = kernels::random_key(call.numbers.seed, call.attributes.text("key")),
                         .threshold = kernels::dropout_threshold(p),
                         .factor = static_cast<float>(1 / (1 - p)),
                         .index = local_index(call.index(x.shape()[0].name)),
                         .first = x.shape()[0].name == "batch" ? call.numbers.batch_offset : 0,
                         .later = call.later};
  launch_map(call, f, channel_rows(x.shape(), true), x, {}, call.outs[0]);
}

}  // namespace kintsugi::KINTSUGI_GPU
