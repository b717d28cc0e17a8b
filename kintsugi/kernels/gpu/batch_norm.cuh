// Batch norm and group norm, their statistics and gradients (channels.h). To batch norm, the batch, or each of its
// groups of samples, is one sample and each channel a group.
#include "kintsugi/kernels/gpu/channels.h"
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/places.h"

namespace kintsugi::KINTSUGI_GPU {

int64_t batch_statistics_workspace(const KernelShapes&);
int64_t group_statistics_workspace(const KernelShapes&);

namespace {

using kernels::BatchNormGradIn;
using kernels::BatchNormIn;
using kernels::BatchNormSumsIn;
using kernels::BatchNormSumsOut;
using kernels::GroupNormGradIn;
using kernels::GroupNormIn;
using kernels::GroupNormSumsIn;
using kernels::GroupNormSumsOut;
using kernels::RunningMomentsIn;
using kernels::RunningStatisticsIn;

const double* sums_of(const KernelCall& call, const View& statistics) {
  base::require(statistics.data == nullptr || statistics.dtype() == DType::f64, "kernel", "{} with statistics of {}",
                call.kind, name_of(statistics.dtype()));
  return data<double>(statistics);
}

// Groups of samples with statistics [batch_group moment channels]; otherwise one.
int64_t batch_groups(const tensor::Shape& statistics) {
  return statistics.rank() == 3 ? statistics[0].size : 1;
}
// x as [groups rows channels]
ChannelRows batch_rows(const tensor::Shape& x, int64_t groups) {
  ChannelRows rows = channel_rows(x, false);
  rows.samples = groups;
  rows.rows /= std::max<int64_t>(groups, 1);
  return rows;
}

Moments moments_of_batch(const KernelCall& call, const View& statistics, int64_t channels) {
  return {.statistics = sums_of(call, statistics),
          .mean = {},
          .variance = {},
          .group = {.grouped = false, .groups = channels, .each = 1, .index = {}},
          .share = statistics.data == nullptr ? 1 : 1 / static_cast<double>(call.attributes.integer("count")),
          .epsilon = call.attributes.number_or("epsilon", 0)};
}

Moments group_moments(const KernelCall& call, const View& statistics, const tensor::Shape& x) {
  const int64_t groups = call.attributes.integer("groups");
  return {.statistics = sums_of(call, statistics),
          .mean = {},
          .variance = {},
          .group = {.grouped = true,
                    .groups = groups,
                    .each = call.attributes.integer("channels") / groups,
                    .index = local_index(call.index(x[x.rank() - 1].name))},
          .share = 1 / static_cast<double>(call.attributes.integer("count")),
          .epsilon = call.attributes.number_or("epsilon", 0)};
}

// --- Values

// y = (x - mean) / deviation * gamma + beta, plus `other`, then ReLU if `relu`.
struct Normalized {
  Moments moments;
  AnyData gamma, beta;
  bool relu = false;

  template <int N>
  struct Of {
    float mean[N], by[N], shift[N];
    bool relu;
    __device__ __forceinline__ float value(int i, float x, float added) const {
      const float y = (x - mean[i]) * by[i] + shift[i] + added;
      return relu ? (y > 0 ? y : 0) : y;
    }
  };
  template <int N>
  __device__ __forceinline__ Of<N> of(int64_t sample, int64_t channel) const {
    Of<N> made;
    made.relu = relu;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      const bool real = moments.group(channel + i) >= 0;
      const Moment m = moments(sample, channel + i);
      made.mean[i] = static_cast<float>(m.mean);
      made.by[i] = m.inverse * load_one(gamma, channel + i);
      made.shift[i] = real ? load_one(beta, channel + i) : 0;
    }
    return made;
  }
};

// With the sums of dy and of dy * xhat over whatever shares a mean: dx = gamma / deviation * dy - (the mean of the
// first + xhat * the mean of the second) / deviation, both times gamma for batch norm. `other` is dy.
struct NormalizedGrad {
  Moments moments;
  AnyData gamma;
  const double* sums = nullptr;  // group norm, of dy * gamma: [samples moment groups]
  AnyData dgamma, dbeta;         // batch norm: [samples channels]

  template <int N>
  struct Of {
    float mean[N], by[N], shift[N], slope[N];
    __device__ __forceinline__ float value(int i, float x, float dy) const {
      return dy * by[i] - shift[i] - (x - mean[i]) * slope[i];
    }
  };
  template <int N>
  __device__ __forceinline__ Of<N> of(int64_t sample, int64_t channel) const {
    Of<N> made;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      const int64_t g = moments.group(channel + i);
      const Moment m = moments(sample, channel + i);
      const auto share = static_cast<float>(moments.share);
      const float by = m.inverse * load_one(gamma, channel + i);
      float of_dy = 0, of_xhat = 0;
      if (sums == nullptr) {
        const int64_t at = sample * moments.group.groups + channel + i;
        of_dy = by * load_one(dbeta, at), of_xhat = by * load_one(dgamma, at);
      } else if (g >= 0) {
        const double* const at = sums + sample * 2 * moments.group.groups + g;
        of_dy = m.inverse * static_cast<float>(at[0]);
        of_xhat = m.inverse * static_cast<float>(at[moments.group.groups]);
      }
      made.mean[i] = static_cast<float>(m.mean);
      made.by[i] = by;
      made.shift[i] = of_dy * share;
      made.slope[i] = of_xhat * m.inverse * share;
    }
    return made;
  }
};

// --- Sums, from those of sum_channels: [samples slices channels]

struct Partial {
  const ChannelSum* at;
  ChannelSums plan;
  Moments moments;

  // Sums of a channel of a sample: of dy * xhat, and of dy; the pivot was the rounded mean.
  __device__ ChannelSum of_xhat(int64_t sample, int64_t slice, int64_t channel) const {
    const ChannelSum sum = at[(sample * plan.slices + slice) * plan.x.channels + channel];
    const Moment m = moments(sample, channel);
    const double rounded = static_cast<double>(static_cast<float>(m.mean)) - m.mean;
    return {(sum.first + rounded * sum.second) * static_cast<double>(m.inverse), sum.second};
  }
  // Local channels among which are all of a group: [begin, end).
  __device__ void range(int64_t group, int64_t& begin, int64_t& end) const {
    const LocalIndex& index = moments.group.index;
    const int64_t first = group * moments.group.each, last = first + moments.group.each;
    begin = plan.x.channels, end = 0;
    for (int i = 0; i < index.count; ++i) {
      if (index.global[i] < 0) continue;
      const int64_t from = index.begin[i] + (first > index.global[i] ? first - index.global[i] : 0),
                    until = index.begin[i] + last - index.global[i],
                    to = until < index.begin[i + 1] ? until : index.begin[i + 1];
      if (from >= to) continue;
      begin = from < begin ? from : begin;
      end = to > end ? to : end;
    }
    if (begin > end) begin = end;
  }
};

// statistics: [samples moment channels]
struct JoinStatistics {
  Partial partial;
  double* to;
  bool add;

  __device__ int64_t items(int64_t) const { return partial.plan.slices; }
  __device__ ChannelSum term(int64_t output, int64_t slice) const {
    const int64_t channels = partial.plan.x.channels, sample = output / channels;
    return partial.at[(sample * partial.plan.slices + slice) * channels + output % channels];
  }
  __device__ void put(int64_t output, const ChannelSum& sum) const {
    const int64_t channels = partial.plan.x.channels;
    double *const first = to + output / channels * 2 * channels + output % channels, *const second = first + channels;
    *first = add ? *first + sum.first : sum.first;
    *second = add ? *second + sum.second : sum.second;
  }
};

// Sums over the samples: dgamma, dbeta [channels]; with `by_sample`, of each sample: [samples channels]
struct JoinGradients {
  Partial partial;
  AnyData dgamma, dbeta;
  bool add_gamma, add_beta, by_sample;

  __device__ int64_t items(int64_t) const { return partial.plan.slices * (by_sample ? 1 : partial.plan.x.samples); }
  __device__ ChannelSum term(int64_t output, int64_t item) const {
    const int64_t channels = partial.plan.x.channels,
                  sample = by_sample ? output / channels : item / partial.plan.slices;
    return partial.of_xhat(sample, item % partial.plan.slices, output % channels);
  }
  __device__ void put(int64_t output, const ChannelSum& sum) const {
    put_one(dgamma, output, sum.first, add_gamma);
    put_one(dbeta, output, sum.second, add_beta);
  }
};

// Sums over the channels of each group of a sample: [samples moment groups]. With gamma, of dy * gamma and of dy *
// gamma * xhat; otherwise of x and of its squares.
struct JoinGroups {
  Partial partial;
  AnyData gamma;
  double* to;
  bool add;

  __device__ int64_t items(int64_t output) const {
    int64_t begin, end;
    partial.range(output % partial.moments.group.groups, begin, end);
    return (end - begin) * partial.plan.slices;
  }
  __device__ ChannelSum term(int64_t output, int64_t item) const {
    const int64_t groups = partial.moments.group.groups, sample = output / groups, group = output % groups;
    int64_t begin, end;
    partial.range(group, begin, end);
    const int64_t channel = begin + item / partial.plan.slices, slice = item % partial.plan.slices;
    if (partial.moments.group(channel) != group) return {};
    if (gamma.data == nullptr)
      return partial.at[(sample * partial.plan.slices + slice) * partial.plan.x.channels + channel];
    const ChannelSum sum = partial.of_xhat(sample, slice, channel);
    const double by = load_one(gamma, channel);
    return {by * sum.second, by * sum.first};
  }
  __device__ void put(int64_t output, const ChannelSum& sum) const {
    const int64_t groups = partial.moments.group.groups;
    double *const first = to + output / groups * 2 * groups + output % groups, *const second = first + groups;
    *first = add ? *first + sum.first : sum.first;
    *second = add ? *second + sum.second : sum.second;
  }
};

ChannelSum* partial_of(const KernelCall& call) {
  return reinterpret_cast<ChannelSum*>(call.workspace.data());
}

// --- Running statistics

struct Running {
  AnyData mean, variance, next_mean, next_variance;
  Moments batch;
  double momentum, unbiased;  // unbiased: factor of the variance
  int64_t channels;
};

__global__ void __launch_bounds__(kChannelThreads) follow_statistics(Running r) {
  wait_for_kernels_before();
  let_next_begin();
  const int64_t c = first_piece();
  if (c >= r.channels) return;
  const double mean = r.batch.statistics[c] * r.batch.share,
               spread = r.batch.statistics[r.channels + c] * r.batch.share - mean * mean;
  const double old_mean = load_one(r.mean, c), old_variance = load_one(r.variance, c);
  put_one(r.next_mean, c, old_mean + r.momentum * (mean - old_mean), false);
  put_one(r.next_variance, c, old_variance + r.momentum * ((spread > 0 ? spread : 0) * r.unbiased - old_variance),
          false);
}

// Of the groups of a batch, of which `real` are not padding, whose statistics are zero. statistics, moments: [groups
// moment channels], [group_moment channels]
__global__ void __launch_bounds__(kChannelThreads)
    sum_moments(Moments batch, double unbiased, int64_t groups, double real, int64_t channels, double* moments) {
  wait_for_kernels_before();
  let_next_begin();
  const int64_t c = first_piece();
  if (c >= channels) return;
  double mean = 0, variance = 0;
  for (int64_t g = 0; g < groups; ++g) {
    const double *const sums = batch.statistics + g * 2 * channels, average = sums[c] * batch.share,
                        spread = sums[channels + c] * batch.share - average * average;
    mean += average;
    variance += (spread > 0 ? spread : 0) * unbiased;
  }
  moments[c] = mean;
  moments[channels + c] = variance;
  moments[2 * channels + c] = real;
}

// The mean over all groups of a step.
__global__ void __launch_bounds__(kChannelThreads) follow_moments(Running r, const double* moments) {
  wait_for_kernels_before();
  let_next_begin();
  const int64_t c = first_piece();
  if (c >= r.channels) return;
  const double groups = moments[2 * r.channels + c], share = groups > 0 ? r.momentum / groups : 0,
               kept = groups > 0 ? 1 - r.momentum : 1;  // no groups: padding
  put_one(r.next_mean, c, kept * load_one(r.mean, c) + share * moments[c], false);
  put_one(r.next_variance, c, kept * load_one(r.variance, c) + share * moments[r.channels + c], false);
}

dim3 channel_blocks(int64_t channels) {
  return dim3(static_cast<unsigned>(quotient_up(channels, kChannelThreads)));
}

}  // namespace

// The statistics are the only output, or the second operand.
int64_t batch_statistics_workspace(const KernelShapes& shapes) {
  const tensor::Type& x = *shapes.ins[0];
  const tensor::Type& statistics = shapes.ins.size() > 1 ? *shapes.ins[BatchNormSumsIn::kStatistics] : *shapes.outs[0];
  return channel_sums(batch_rows(x.shape, batch_groups(statistics.shape)), x.dtype).bytes();
}
int64_t group_statistics_workspace(const KernelShapes& shapes) {
  const tensor::Type& x = *shapes.ins[0];
  return channel_sums(channel_rows(x.shape, true), x.dtype).bytes();
}

void batch_statistics(const KernelCall& call) {
  const View& x = call.ins[0];
  const ChannelRows rows = batch_rows(x.shape(), batch_groups(call.outs[0].shape()));
  const ChannelSums plan = launch_channel_sums<false>(call, rows, {}, x, {}, partial_of(call));
  const Partial partial = {.at = partial_of(call), .plan = plan, .moments = {}};
  launch_join(call, JoinStatistics{partial, data<double>(call.outs[0]), call.accumulates(0)},
              rows.samples * rows.channels);
}

void batch_norm(const KernelCall& call) {
  using In = BatchNormIn;
  const View& x = call.ins[In::kX];
  Moments moments = moments_of_batch(call, call.ins[In::kStatistics], width(x.shape()));
  if (moments.statistics == nullptr) {
    moments.mean = any_data("batch_norm", call.ins[In::kMean]);
    moments.variance = any_data("batch_norm", call.ins[In::kVariance]);
  }
  const std::string epilogue = call.attributes.text_or("epilogue", "");
  base::require(epilogue.empty() || epilogue == "relu", "kernel", "batch_norm with \"{}\" on a device", epilogue);
  const Normalized f = {.moments = moments,
                        .gamma = any_data("batch_norm", call.ins[In::kGamma]),
                        .beta = any_data("batch_norm", call.ins[In::kBeta]),
                        .relu = !epilogue.empty()};
  const int64_t groups = moments.statistics == nullptr ? 1 : batch_groups(call.ins[In::kStatistics].shape());
  launch_map(call, f, batch_rows(x.shape(), groups), x, call.ins[In::kAdded], call.outs[0]);
}

void batch_norm_sums(const KernelCall& call) {
  using In = BatchNormSumsIn;
  using Out = BatchNormSumsOut;
  const View& x = call.ins[In::kX];
  const ChannelRows rows = batch_rows(x.shape(), batch_groups(call.ins[In::kStatistics].shape()));
  const Moments moments = moments_of_batch(call, call.ins[In::kStatistics], rows.channels);
  const ChannelSums plan = launch_channel_sums<true>(call, rows, moments, x, call.ins[In::kDy], partial_of(call));
  launch_join(call,
              JoinGradients{.partial = {.at = partial_of(call), .plan = plan, .moments = moments},
                            .dgamma = any_data("batch_norm_sums", call.outs[Out::kDgamma]),
                            .dbeta = any_data("batch_norm_sums", call.outs[Out::kDbeta]),
                            .add_gamma = call.accumulates(Out::kDgamma),
                            .add_beta = call.accumulates(Out::kDbeta),
                            .by_sample = true},
              rows.samples * rows.channels);
}

void batch_norm_grad(const KernelCall& call) {
  using In = BatchNormGradIn;
  const View& x = call.ins[In::kX];
  const NormalizedGrad f = {.moments = moments_of_batch(call, call.ins[In::kStatistics], width(x.shape())),
                            .gamma = any_data("batch_norm_grad", call.ins[In::kGamma]),
                            .dgamma = any_data("batch_norm_grad", call.ins[In::kDgamma]),
                            .dbeta = any_data("batch_norm_grad", call.ins[In::kDbeta])};
  launch_map(call, f, batch_rows(x.shape(), batch_groups(call.ins[In::kStatistics].shape())), x, call.ins[In::kDy],
             call.outs[0]);
}

void group_statistics(const KernelCall& call) {
  const View& x = call.ins[0];
  const ChannelRows rows = channel_rows(x.shape(), true);
  const ChannelSums plan = launch_channel_sums<false>(call, rows, {}, x, {}, partial_of(call));
  const Moments moments = group_moments(call, {}, x.shape());
  const Partial partial = {.at = partial_of(call), .plan = plan, .moments = moments};
  launch_join(call, JoinGroups{partial, {}, data<double>(call.outs[0]), call.accumulates(0)},
              rows.samples * moments.group.groups);
}

void group_norm(const KernelCall& call) {
  using In = GroupNormIn;
  const View& x = call.ins[In::kX];
  const Normalized f = {.moments = group_moments(call, call.ins[In::kStatistics], x.shape()),
                        .gamma = any_data("group_norm", call.ins[In::kGamma]),
                        .beta = any_data("group_norm", call.ins[In::kBeta])};
  launch_map(call, f, channel_rows(x.shape(), true), x, {}, call.outs[0]);
}

void group_norm_sums(const KernelCall& call) {
  using In = GroupNormSumsIn;
  using Out = GroupNormSumsOut;
  const View& x = call.ins[In::kX];
  const ChannelRows rows = channel_rows(x.shape(), true);
  const Moments moments = group_moments(call, call.ins[In::kStatistics], x.shape());
  const ChannelSums plan = launch_channel_sums<true>(call, rows, moments, x, call.ins[In::kDy], partial_of(call));
  const Partial partial = {.at = partial_of(call), .plan = plan, .moments = moments};
  launch_join(call,
              JoinGradients{.partial = partial,
                            .dgamma = any_data("group_norm_sums", call.outs[Out::kDgamma]),
                            .dbeta = any_data("group_norm_sums", call.outs[Out::kDbeta]),
                            .add_gamma = call.accumulates(Out::kDgamma),
                            .add_beta = call.accumulates(Out::kDbeta),
                            .by_sample = false},
              rows.channels);
  launch_join(call,
              JoinGroups{partial, any_data("group_norm_sums", call.ins[In::kGamma]),
                         data<double>(call.outs[Out::kSums]), call.accumulates(Out::kSums)},
              rows.samples * moments.group.groups);
}

void group_norm_grad(const KernelCall& call) {
  using In = GroupNormGradIn;
  const View& x = call.ins[In::kX];
  const NormalizedGrad f = {.moments = group_moments(call, call.ins[In::kStatistics], x.shape()),
                            .gamma = any_data("group_norm_grad", call.ins[In::kGamma]),
                            .sums = sums_of(call, call.ins[In::kSums]),
                            .dgamma = {},
                            .dbeta = {}};
  launch_map(call, f, channel_rows(x.shape(), true), x, call.ins[In::kDy], call.outs[0]);
}

void running_statistics(const KernelCall& call) {
  using In = RunningStatisticsIn;
  const View& mean = call.ins[In::kMean];
  const int64_t channels = mean.elements();
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const Running r = {.mean = any_data("running_statistics", mean),
                     .variance = any_data("running_statistics", call.ins[In::kVariance]),
                     .next_mean = any_data("running_statistics", call.outs[0]),
                     .next_variance = any_data("running_statistics", call.outs[1]),
                     .batch = moments_of_batch(call, call.ins[In::kStatistics], channels),
                     .momentum = call.attributes.number("momentum"),
                     .unbiased = count / std::max(count - 1, 1.0),
                     .channels = channels};
  launch_overlapping(*call.stream, channel_blocks(channels), dim3(kChannelThreads), 0,
                     {bytes_of(call.outs[0]), bytes_of(call.outs[1])}, follow_statistics, r);
}

void batch_moments(const KernelCall& call) {
  const View& statistics = call.ins[0];
  const int64_t channels = width(statistics.shape());
  const auto count = static_cast<double>(call.attributes.integer("count"));
  int64_t real = 0;
  for (const tensor::Segment& s : call.index("batch_group").segments()) real += s.global < 0 ? 0 : s.count;
  launch_overlapping(*call.stream, channel_blocks(channels), dim3(kChannelThreads), 0, {bytes_of(call.outs[0])},
                     sum_moments, moments_of_batch(call, statistics, channels), count / std::max(count - 1, 1.0),
                     batch_groups(statistics.shape()), static_cast<double>(real), channels, data<double>(call.outs[0]));
}

void running_moments(const KernelCall& call) {
  using In = RunningMomentsIn;
  const View& mean = call.ins[In::kMean];
  const Running r = {.mean = any_data("running_moments", mean),
                     .variance = any_data("running_moments", call.ins[In::kVariance]),
                     .next_mean = any_data("running_moments", call.outs[0]),
                     .next_variance = any_data("running_moments", call.outs[1]),
                     .batch = {},
                     .momentum = call.attributes.number("momentum"),
                     .unbiased = 1,
                     .channels = mean.elements()};
  launch_overlapping(*call.stream, channel_blocks(r.channels), dim3(kChannelThreads), 0,
                     {bytes_of(call.outs[0]), bytes_of(call.outs[1])}, follow_moments, r,
                     data<double>(call.ins[In::kMoments]));
}

}  // namespace kintsugi::KINTSUGI_GPU
