#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/channel_rows.h"
#include "kintsugi/kernels/cpu/images.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::View;

int64_t channels_of(const tensor::Shape& x) {
  return x[x.rank() - 1].size;
}
int64_t rows_of(const View& x) {
  return x.elements() / std::max<int64_t>(channels_of(x.shape()), 1);
}

// An element of a floating operand.
double at(const View& x, int64_t i) {
  double value = 0;
  tensor::dispatch(x.dtype(), [&]<typename T>(T) {
    value = static_cast<double>(static_cast<tensor::arithmetic_t<T>>(reinterpret_cast<const T*>(x.data)[i]));
  });
  return value;
}

// Calls part(group, its rows) for each group of the samples of x.
template <typename F>
void for_groups(const View& x, const View& statistics, const F& part) {
  const int64_t groups = statistics.data && statistics.shape().rank() == 3 ? statistics.shape()[0].size : 1,
                rows = rows_of(x) / std::max<int64_t>(groups, 1);
  for (int64_t g = 0; g < groups; ++g) part(g, base::Range{g * rows, (g + 1) * rows});
}

struct Moments {
  double mean = 0, inverse_deviation = 0;
};

Moments moments(const KernelCall& call, double mean, double variance) {
  return {mean, 1 / std::sqrt(variance + call.attributes.number("epsilon"))};
}
// Of a channel of a group, from the sums of the batch.
Moments moments_of(const KernelCall& call, const View& statistics, int64_t group, int64_t channel) {
  const auto count = static_cast<double>(call.attributes.integer("count"));
  const int64_t channels = channels_of(statistics.shape()), first = 2 * channels * group;
  const double mean = at(statistics, first + channel) / count,
               squares = at(statistics, first + channels + channel) / count;
  return moments(call, mean, std::max(squares - mean * mean, 0.0));
}

int64_t size_of_sums(int64_t channels) {
  return (2 * channels + 7) / 8 * 8;
}

double* take_sums(int64_t channels, int threads, Scratch& scratch) {
  return scratch.take<double>(size_of_sums(channels) * threads);
}

base::Range share_of(base::Range rows, int part, int parts) {
  const base::Range share = base::share(rows.end - rows.begin, part, parts);
  return {rows.begin + share.begin, rows.begin + share.end};
}

// Each thread's sums, added in order to those of the first.
template <typename F>
void sum_rows(const KernelCall& call, base::Range rows, int64_t channels, double* sums, const F& part) {
  const int64_t size = size_of_sums(channels);
  const int threads = call.team.size();
  call.team.run([&](int thread) { part(share_of(rows, thread, threads), sums + thread * size); });
  for (int t = 1; t < threads; ++t)
    for (int64_t i = 0; i < 2 * channels; ++i) sums[i] += sums[t * size + i];
}

constexpr int64_t kGrain = 16;  // rows

}  // namespace

bool batch_norm_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype) && is_fast(o.outs[0].dtype);
}
bool batch_statistics_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype);
}

int64_t batch_statistics_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_sums(channels_of(shapes.ins[0]->shape), shapes.threads, scratch);
  return scratch.bytes();
}

void batch_statistics(const KernelCall& call) {
  const int64_t channels = channels_of(call.ins[0].shape());
  Scratch scratch(call.workspace);
  double* sums = take_sums(channels, call.team.size(), scratch);
  for_groups(call.ins[0], call.outs[0], [&](int64_t group, base::Range rows) {
    sum_rows(call, rows, channels, sums,
             [&](base::Range r, double* to) { sum_channels(call.ins[0].dtype(), call.ins[0].data, channels, r, to); });
    std::copy_n(sums, 2 * channels, call.outs[0].as<double>().data() + group * 2 * channels);
  });
}

// At most three factors per channel.
int64_t batch_norm_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  for (int i = 0; i < 3; ++i) scratch.take<float>(channels_of(shapes.ins[0]->shape));
  return scratch.bytes();
}

void batch_norm(const KernelCall& call) {
  using In = BatchNormIn;
  const int64_t channels = channels_of(call.ins[In::kX].shape());
  Scratch scratch(call.workspace);
  float *scale = scratch.take<float>(channels), *shift = scratch.take<float>(channels);
  const NormalizedRows rows = {.x = call.ins[In::kX].data,
                               .added = call.ins[In::kAdded].data,
                               .y = call.outs[0].data,
                               .relu = call.attributes.has("epilogue")};
  for_groups(call.ins[In::kX], call.ins[In::kStatistics], [&](int64_t group, base::Range of) {
    for (int64_t c = 0; c < channels; ++c) {
      const Moments m = call.ins[In::kStatistics].data
                            ? moments_of(call, call.ins[In::kStatistics], group, c)
                            : moments(call, at(call.ins[In::kMean], c), at(call.ins[In::kVariance], c));
      const double by = at(call.ins[In::kGamma], c) * m.inverse_deviation;
      scale[c] = static_cast<float>(by);
      shift[c] = static_cast<float>(at(call.ins[In::kBeta], c) - m.mean * by);
    }
    call.team.for_shares(of.end - of.begin, kGrain, [&](base::Range r, int) {
      normalize_rows(call.outs[0].dtype(), rows, channels, {of.begin + r.begin, of.begin + r.end}, scale, shift);
    });
  });
}

int64_t batch_norm_sums_workspace(const KernelShapes& shapes) {
  const int64_t channels = channels_of(shapes.ins[BatchNormSumsIn::kX]->shape);
  Scratch scratch;
  scratch.take<float>(channels);
  take_sums(channels, shapes.threads, scratch);
  return scratch.bytes();
}

void batch_norm_sums(const KernelCall& call) {
  using In = BatchNormSumsIn;
  const View& x = call.ins[In::kX];
  const int64_t channels = channels_of(x.shape());
  Scratch scratch(call.workspace);
  float* mean = scratch.take<float>(channels);
  double* sums = take_sums(channels, call.team.size(), scratch);
  const auto put = [&](size_t output, int64_t i, double value) {
    tensor::dispatch(call.outs[output].dtype(), [&]<typename T>(T) {
      T& to = reinterpret_cast<T*>(call.outs[output].data)[i];
      using A = tensor::arithmetic_t<T>;
      to =
          static_cast<T>(call.accumulates(output) ? static_cast<A>(to) + static_cast<A>(value) : static_cast<A>(value));
    });
  };
  for_groups(x, call.ins[In::kStatistics], [&](int64_t group, base::Range rows) {
    for (int64_t c = 0; c < channels; ++c)
      mean[c] = static_cast<float>(moments_of(call, call.ins[In::kStatistics], group, c).mean);
    sum_rows(call, rows, channels, sums, [&](base::Range r, double* to) {
      sum_products(x.dtype(), x.data, call.ins[In::kDy].data, channels, r, mean, to);
    });
    for (int64_t c = 0; c < channels; ++c) {
      const Moments m = moments_of(call, call.ins[In::kStatistics], group, c);
      // The mean above was rounded.
      const double products = sums[c] + (static_cast<double>(mean[c]) - m.mean) * sums[channels + c];
      put(BatchNormSumsOut::kDgamma, group * channels + c, products * m.inverse_deviation);
      put(BatchNormSumsOut::kDbeta, group * channels + c, sums[channels + c]);
    }
  });
}

void batch_norm_grad(const KernelCall& call) {
  using In = BatchNormGradIn;
  const int64_t channels = channels_of(call.ins[In::kX].shape());
  const auto count = static_cast<double>(call.attributes.integer("count"));
  Scratch scratch(call.workspace);
  float *a = scratch.take<float>(channels), *b = scratch.take<float>(channels), *shift = scratch.take<float>(channels);
  for_groups(call.ins[In::kX], call.ins[In::kStatistics], [&](int64_t group, base::Range of) {
    for (int64_t c = 0; c < channels; ++c) {
      const Moments m = moments_of(call, call.ins[In::kStatistics], group, c);
      const int64_t i = group * channels + c;
      const double by = at(call.ins[In::kGamma], c) * m.inverse_deviation,
                   slope = -by * m.inverse_deviation * at(call.ins[In::kDgamma], i) / count;
      a[c] = static_cast<float>(by);
      b[c] = static_cast<float>(slope);
      shift[c] = static_cast<float>(-slope * m.mean - by * at(call.ins[In::kDbeta], i) / count);
    }
    call.team.for_shares(of.end - of.begin, kGrain, [&](base::Range r, int) {
      combine_rows(call.outs[0].dtype(), call.ins[In::kX].data, call.ins[In::kDy].data, call.outs[0].data, channels,
                   {of.begin + r.begin, of.begin + r.end}, a, b, shift);
    });
  });
}

}  // namespace kintsugi::kernels::cpu
