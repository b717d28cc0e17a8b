// A share of the samples per thread. The factors of each channel of a sample follow from the moments of its group.
#include <algorithm>
#include <cmath>

#include "kintsugi/kernels/cpu/channel_rows.h"
#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/norm_groups.h"

namespace kintsugi::kernels::cpu {
namespace {

struct GroupSizes {
  int64_t samples, rows, channels, groups;  // rows: per sample

  GroupSizes(const KernelCall& call, const tensor::Shape& x)
      : samples(x[0].size),
        rows(x[0].size == 0 || x[x.rank() - 1].size == 0 ? 0 : x.elements() / x[0].size / x[x.rank() - 1].size),
        channels(x[x.rank() - 1].size),
        groups(call.attributes.integer("groups")) {}

  base::Range rows_of(int64_t sample) const { return {sample * rows, (sample + 1) * rows}; }
};

double number_at(const tensor::View& x, int64_t i) {
  double value = 0;
  tensor::dispatch(x.dtype(), [&]<typename T>(T) {
    value = static_cast<double>(static_cast<tensor::arithmetic_t<T>>(reinterpret_cast<const T*>(x.data)[i]));
  });
  return value;
}

int64_t group_of(const KernelCall& call, const tensor::DimIndex& index, int64_t channel) {
  const int64_t global = index[channel];
  return global < 0 ? -1 : global / (call.attributes.integer("channels") / call.attributes.integer("groups"));
}

// Per-thread memory: factors and sums per channel.
struct GroupMemory {
  float *a, *b, *c;
  double *sums, *dgamma, *dbeta;

  static int64_t bytes(int64_t channels) { return (channels * (3 * 4 + 4 * 8) + 63) / 64 * 64; }
  GroupMemory(std::byte* data, int64_t channels) {
    sums = reinterpret_cast<double*>(data), dgamma = sums + 2 * channels, dbeta = dgamma + channels;
    a = reinterpret_cast<float*>(dbeta + channels), b = a + channels, c = b + channels;
  }
};

// Calls f(sample, memory of its thread) for each sample.
template <typename F>
void for_samples(const KernelCall& call, const GroupSizes& s, const F& f) {
  std::byte* memory = Scratch(call.workspace).take<std::byte>(GroupMemory::bytes(s.channels) * call.team.size());
  call.team.for_shares(s.samples, 1, [&](base::Range r, int thread) {
    const GroupMemory mine(memory + thread * GroupMemory::bytes(s.channels), s.channels);
    for (int64_t n = r.begin; n < r.end; ++n) f(n, mine);
  });
}

}  // namespace

bool group_norm_takes(const Operands& o) {
  return is_fast(o.ins[0].dtype);
}

int64_t group_norm_workspace(const KernelShapes& shapes) {
  const tensor::Shape& x = shapes.ins[0]->shape;
  Scratch scratch;
  scratch.take<std::byte>(GroupMemory::bytes(x[x.rank() - 1].size) * shapes.threads);
  return scratch.bytes();
}

void group_statistics(const KernelCall& call) {
  const tensor::View& x = call.ins[0];
  const GroupSizes s(call, x.shape());
  const tensor::DimIndex& index = call.index(x.shape()[x.shape().rank() - 1].name);
  double* statistics = call.outs[0].as<double>().data();
  for_samples(call, s, [&](int64_t n, const GroupMemory& m) {
    sum_channels(x.dtype(), x.data, s.channels, s.rows_of(n), m.sums);
    double* to = statistics + 2 * n * s.groups;
    std::fill_n(to, 2 * s.groups, 0.0);
    for (int64_t c = 0; c < s.channels; ++c)
      if (const int64_t g = group_of(call, index, c); g >= 0) {
        to[g] += m.sums[c];
        to[s.groups + g] += m.sums[s.channels + c];
      }
  });
}

void group_norm(const KernelCall& call) {
  using In = GroupNormIn;
  const tensor::View& x = call.ins[In::kX];
  const GroupSizes s(call, x.shape());
  const tensor::DimIndex& index = call.index(x.shape()[x.shape().rank() - 1].name);
  const double* statistics = call.ins[In::kStatistics].as<double>().data();
  for_samples(call, s, [&](int64_t n, const GroupMemory& m) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t g = group_of(call, index, c);
      const GroupMoments moments = g < 0 ? GroupMoments{} : group_moments(call, statistics, n, g);
      const double by = g < 0 ? 0.0 : number_at(call.ins[In::kGamma], c) * moments.inverse_deviation;
      m.a[c] = static_cast<float>(by);
      m.b[c] = static_cast<float>(g < 0 ? 0.0 : number_at(call.ins[In::kBeta], c) - moments.mean * by);
    }
    scale_rows(x.dtype(), x.data, call.outs[0].data, s.channels, s.rows_of(n), m.a, m.b);
  });
}

// Each thread sums its samples; the sums are added in the order of threads.
void group_norm_sums(const KernelCall& call) {
  using In = GroupNormSumsIn;
  const tensor::View& x = call.ins[In::kX];
  const GroupSizes s(call, x.shape());
  const tensor::DimIndex& index = call.index(x.shape()[x.shape().rank() - 1].name);
  const double* statistics = call.ins[In::kStatistics].as<double>().data();
  double* sums = call.outs[GroupNormSumsOut::kSums].as<double>().data();
  const int threads = call.team.size();
  std::byte* memory = Scratch(call.workspace).take<std::byte>(GroupMemory::bytes(s.channels) * threads);
  call.team.run([&](int thread) {
    const GroupMemory m(memory + thread * GroupMemory::bytes(s.channels), s.channels);
    std::fill_n(m.dgamma, 2 * s.channels, 0.0);
    const base::Range mine = base::share(s.samples, thread, threads);
    for (int64_t n = mine.begin; n < mine.end; ++n) {
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t g = group_of(call, index, c);
        m.a[c] = g < 0 ? 0.0f : static_cast<float>(group_moments(call, statistics, n, g).mean);
      }
      sum_products(x.dtype(), x.data, call.ins[In::kDy].data, s.channels, s.rows_of(n), m.a, m.sums);
      double* to = sums + 2 * n * s.groups;
      std::fill_n(to, 2 * s.groups, 0.0);
      for (int64_t c = 0; c < s.channels; ++c) {
        const int64_t g = group_of(call, index, c);
        if (g < 0) continue;
        const GroupMoments moments = group_moments(call, statistics, n, g);
        const double dy = m.sums[s.channels + c], gamma = number_at(call.ins[In::kGamma], c),
                     // The mean above was rounded.
            products = (m.sums[c] + (static_cast<double>(m.a[c]) - moments.mean) * dy) * moments.inverse_deviation;
        m.dgamma[c] += products;
        m.dbeta[c] += dy;
        to[g] += dy * gamma;
        to[s.groups + g] += products * gamma;
      }
    }
  });
  for (const size_t output : {GroupNormSumsOut::kDgamma, GroupNormSumsOut::kDbeta})
    tensor::dispatch(call.outs[output].dtype(), [&]<typename T>(T) {
      using A = tensor::arithmetic_t<T>;
      T* to = reinterpret_cast<T*>(call.outs[output].data);
      for (int64_t c = 0; c < s.channels; ++c) {
        double sum = 0;
        for (int t = 0; t < threads; ++t) {
          const GroupMemory m(memory + t * GroupMemory::bytes(s.channels), s.channels);
          sum += output == GroupNormSumsOut::kDgamma ? m.dgamma[c] : m.dbeta[c];
        }
        to[c] = static_cast<T>(call.accumulates(output) ? static_cast<A>(to[c]) + static_cast<A>(sum)
                                                        : static_cast<A>(sum));
      }
    });
}

void group_norm_grad(const KernelCall& call) {
  using In = GroupNormGradIn;
  const tensor::View& x = call.ins[In::kX];
  const GroupSizes s(call, x.shape());
  const tensor::DimIndex& index = call.index(x.shape()[x.shape().rank() - 1].name);
  const double *statistics = call.ins[In::kStatistics].as<double>().data(),
               *sums = call.ins[In::kSums].as<double>().data();
  const auto count = static_cast<double>(call.attributes.integer("count"));
  for_samples(call, s, [&](int64_t n, const GroupMemory& m) {
    for (int64_t c = 0; c < s.channels; ++c) {
      const int64_t g = group_of(call, index, c);
      m.a[c] = m.b[c] = m.c[c] = 0.0f;
      if (g < 0) continue;
      const GroupMoments moments = group_moments(call, statistics, n, g);
      const double inverse = moments.inverse_deviation,
                   slope = inverse * inverse * sums[(2 * n + 1) * s.groups + g] / count;
      m.a[c] = static_cast<float>(inverse * number_at(call.ins[In::kGamma], c));
      m.b[c] = static_cast<float>(-slope);
      m.c[c] = static_cast<float>(slope * moments.mean - inverse * sums[2 * n * s.groups + g] / count);
    }
    combine_rows(x.dtype(), x.data, call.ins[In::kDy].data, call.outs[0].data, s.channels, s.rows_of(n), m.a, m.b, m.c);
  });
}

}  // namespace kintsugi::kernels::cpu
