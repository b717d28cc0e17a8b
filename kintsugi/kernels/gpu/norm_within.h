// A norm of few rows within the kernel that reads them, as of a token that is generated: each block makes all rows for
// itself, in shared memory. The bits are those of norm.cuh, whose sums are taken here in the same order.
#pragma once

#include <optional>

#include "kintsugi/kernels/gpu/norm_rows.h"

namespace kintsugi::KINTSUGI_GPU {

struct NormWithin {
  const void* x = nullptr;
  AnyData gamma, beta;  // beta may be null
  int count = 0, width = 0;
  float epsilon = 0, offset = 0;
  bool shifts = false;
  TeamSize team;  // of a row

  // All that a block needs in shared memory: rows of elements, then gamma with its offset, and beta if there is one.
  size_t shared_bytes(int64_t rows, int64_t element) const {
    const int64_t weights = beta.data == nullptr ? 1 : 2;
    return static_cast<size_t>(width * (rows * element + weights * static_cast<int64_t>(sizeof(float))));
  }
  __device__ __forceinline__ void fetch_weights_to(float* weights) const {
    fetch_weights(weights, gamma, offset, width, width);
    if (beta.data != nullptr) fetch_weights(weights + width, beta, 0, width, width);
  }
};

// By all threads of a block, to `rows` [kM width], where those behind `count` stay as they are. Barriers stand before
// and behind the rest of it.
template <typename T, int kM>
__device__ __forceinline__ void normalize_within(const NormWithin& n, T* rows, const float* weights) {
  constexpr int N = kWide<T>;
  __shared__ Sums<2 * kM> scratch[kMostThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int warps = static_cast<int>(blockDim.x) / 32, size = n.team.threads;
  const int place = n.team.by_lanes ? lane : thread;
  // Calls f(column) for what this thread has of a row: a team of 32 lanes has every `warps`th row.
  const auto each = [&](int row, const auto& f) {
    if (row >= n.count || place >= size || (n.team.by_lanes && row % warps != warp)) return;
    for (int column = place * N; column < n.width; column += size * N) f(column);
  };
  const T* const x = static_cast<const T*>(n.x);
  GPU_UNROLL
  for (int row = 0; row < kM; ++row)
    each(row, [&](int column) {
      const auto from = reinterpret_cast<const Vec<T, N>*>(x + row * n.width + column);
      *reinterpret_cast<Vec<T, N>*>(rows + row * n.width + column) = *from;
    });
  float pivot[kM];
  GPU_UNROLL
  for (int row = 0; row < kM; ++row) {
    Packed<T, N> first = {};
    if (row < n.count) first.load(x + row * n.width);
    pivot[row] = pivot_of(first, n.shifts);
  }

  Sums<2 * kM> sums = {};
  GPU_UNROLL
  for (int row = 0; row < kM; ++row)
    each(row, [&](int column) {
      Packed<T, N> some;
      some.load(rows + row * n.width + column);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) {
        const float u = some[i] - pivot[row];
        sums.at[2 * row] += u;
        sums.at[2 * row + 1] += u * u;
      }
    });
  sums = lanes_sum(sums);
  if (lane == 0) scratch[warp] = sums;
  __syncthreads();  // weights are there too
  if (!n.team.by_lanes) {
    sums = {};
    if (lane < warps) sums = scratch[lane];
    sums = lanes_sum(sums);
  }
  const float share = 1.0f / static_cast<float>(n.width);
  GPU_UNROLL
  for (int row = 0; row < kM; ++row) {
    const Spread s = spread_of(sums.at[2 * row], sums.at[2 * row + 1], n.shifts, share, n.epsilon);
    each(row, [&](int column) {
      Packed<T, N> some;
      some.load(rows + row * n.width + column);
      float gamma[N], beta[N] = {}, y[N];
      load_run(gamma, weights + column);
      if (n.beta.data != nullptr) load_run(beta, weights + n.width + column);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) y[i] = (some[i] - pivot[row] - s.shift) * s.inverse * gamma[i] + beta[i];
      put_run(rows + row * n.width + column, y, false);
    });
  }
  __syncthreads();
}

// Of a call of a norm, which is not made then; none if it is too long, or its rows do not begin at 16 bytes.
inline std::optional<NormWithin> norm_within(const KernelCall& call, int64_t most_rows) {
  using In = kernels::NormIn;
  const View &x = call.ins[In::kX], &gamma = call.ins[In::kGamma];
  NormWithin n;
  n.shifts = call.kind == "layer_norm";
  n.x = x.data, n.gamma = any_data("a norm", gamma);
  if (n.shifts && call.ins.size() > In::kBeta) n.beta = any_data("a norm", call.ins[In::kBeta]);
  const int64_t width = gamma.elements(), count = width == 0 ? 0 : x.elements() / width;
  if (count == 0 || count > most_rows || width > kMostHeld || width % 8 != 0 || x.dtype() != call.outs[0].dtype() ||
      call.accumulates(0) || !all_wide(n.x, n.gamma.data, n.beta.data))
    return std::nullopt;
  n.count = static_cast<int>(count), n.width = static_cast<int>(width);
  n.epsilon = static_cast<float>(call.attributes.number("epsilon"));
  n.offset = static_cast<float>(call.attributes.number_or("gamma_offset", 0));
  n.team = team_size(width, x.dtype());
  return n;
}

}  // namespace kintsugi::KINTSUGI_GPU
