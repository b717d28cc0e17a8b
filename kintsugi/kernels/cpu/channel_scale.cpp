// Scaling of channels, and of whole samples.
#include <algorithm>

#include "kintsugi/kernels/cpu/channel_rows.h"
#include "kintsugi/kernels/cpu/dropout_stream.h"
#include "kintsugi/kernels/cpu/images.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::cpu {
namespace {

int64_t last_size(const tensor::Shape& shape) {
  return shape[shape.rank() - 1].size;
}

int64_t rows_above(const tensor::View& x) {
  return x.elements() / std::max<int64_t>(last_size(x.shape()), 1);
}

double element(const tensor::View& x, int64_t i) {
  double value = 0;
  tensor::dispatch(x.dtype(), [&]<typename T>(T) {
    value = static_cast<double>(static_cast<tensor::arithmetic_t<T>>(reinterpret_cast<const T*>(x.data)[i]));
  });
  return value;
}

constexpr int64_t kRowGrain = 16;

}  // namespace

int64_t channel_scale_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  for (int i = 0; i < 2; ++i) scratch.take<float>(last_size(shapes.ins[0]->shape));
  return scratch.bytes();
}

void channel_scale(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const int64_t channels = last_size(x.shape());
  Scratch scratch(call.workspace);
  float *by = scratch.take<float>(channels), *shift = scratch.take<float>(channels);
  for (int64_t c = 0; c < channels; ++c) by[c] = static_cast<float>(element(call.ins[1], c)), shift[c] = 0.0f;
  call.team.for_shares(rows_above(x), kRowGrain,
                       [&](base::Range r, int) { scale_rows(y.dtype(), x.data, y.data, channels, r, by, shift); });
}

int64_t channel_scale_sums_workspace(const KernelShapes& shapes) {
  const int64_t channels = last_size(shapes.ins[0]->shape);
  Scratch scratch;
  scratch.take<float>(channels);
  scratch.take<double>(2 * channels * shapes.threads);
  return scratch.bytes();
}

void channel_scale_sums(const KernelCall& call) {
  const tensor::View& x = call.ins[0];
  const int64_t channels = last_size(x.shape());
  const int threads = call.team.size();
  Scratch scratch(call.workspace);
  float* zeros = scratch.take<float>(channels);
  double* sums = scratch.take<double>(2 * channels * threads);
  std::fill_n(zeros, channels, 0.0f);
  call.team.run([&](int thread) {
    sum_products(x.dtype(), x.data, call.ins[1].data, channels, base::share(rows_above(x), thread, threads), zeros,
                 sums + 2 * channels * thread);
  });
  tensor::dispatch(call.outs[0].dtype(), [&]<typename T>(T) {
    using A = tensor::arithmetic_t<T>;
    T* to = reinterpret_cast<T*>(call.outs[0].data);
    for (int64_t c = 0; c < channels; ++c) {
      for (int t = 1; t < threads; ++t) sums[c] += sums[2 * channels * t + c];
      to[c] = static_cast<T>(call.accumulates(0) ? static_cast<A>(to[c]) + static_cast<A>(sums[c])
                                                 : static_cast<A>(sums[c]));
    }
  });
}

void drop_path(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const double p = call.attributes.number("p");
  const auto key = random_key(call.numbers.seed, call.attributes.text("key"));
  const uint32_t threshold = dropout_threshold(p);
  const tensor::DimIndex& batch = call.index("batch");
  const int64_t samples = x.shape()[0].size;
  if (samples == 0) return;
  const int64_t channels = last_size(x.shape()), rows = rows_above(x) / samples;
  Scratch scratch(call.workspace);
  float *by = scratch.take<float>(channels), *shift = scratch.take<float>(channels);
  std::fill_n(by, channels, static_cast<float>(1 / (1 - p)));
  std::fill_n(shift, channels, 0.0f);
  const int64_t bytes = channels * tensor::size_of(y.dtype());
  call.team.for_shares(samples * rows, kRowGrain, [&](base::Range r, int) {
    for (int64_t n = r.begin / rows; n * rows < r.end; ++n) {
      const base::Range mine = {std::max(r.begin, n * rows), std::min(r.end, (n + 1) * rows)};
      const int64_t place = batch[n] < 0 ? -1 : batch[n] + call.numbers.batch_offset;
      const bool kept = place >= 0 && random_word(key, static_cast<uint64_t>(call.numbers.step),
                                                  static_cast<uint64_t>(place)) >= threshold;
      if (kept) {
        scale_rows(y.dtype(), x.data, y.data, channels, mine, by, shift);
      } else {
        std::fill_n(y.data + mine.begin * bytes, mine.size() * bytes, std::byte{0});
      }
    }
  });
}

}  // namespace kintsugi::kernels::cpu
