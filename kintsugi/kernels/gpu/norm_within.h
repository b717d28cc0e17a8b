// A norm of few rows fused into the kernel that reads them, as in decoding: each block computes all rows redundantly in
// shared memory. Bit-identical to norm.cuh, since sums are taken in the same order.
#pragma once

#include <optional>

#include "kintsugi/kernels/gpu/row_teams.h"

namespace kintsugi::KINTSUGI_GPU {

// Maximum number of runs of N elements of a row per thread (team_size).
template <int N>
constexpr int kRunsWithin = N == 8 ? 4 : 6;

struct NormWithin {
  const void* x = nullptr;
  AnyData gamma, beta;  // beta may be null
  int count = 0, width = 0;
  float epsilon = 0, offset = 0;
  bool shifts = false;
  TeamSize team;  // per row

  // Shared memory of a block: rows of elements, then gamma and beta in storage format, one copy per row if each row has
  // its own warp.
  size_t shared_bytes(int64_t rows, int64_t element) const {
    const int64_t copies = team.by_lanes ? rows : 1;
    return static_cast<size_t>(width * (rows * element + copies * 2 * static_cast<int64_t>(sizeof(float))));
  }
  // Calls f(r, column) for this thread's runs of N elements of a row; each warp takes every `warps`th row.
  template <int N, typename F>
  __device__ __forceinline__ void each_run(int row, const F& f) const {
    const int thread = static_cast<int>(threadIdx.x), warps = static_cast<int>(blockDim.x) / 32;
    const int place = team.by_lanes ? thread % 32 : thread;
    if (row >= count || place >= team.threads || (team.by_lanes && row % warps != thread / 32)) return;
    GPU_UNROLL
    for (int r = 0; r < kRunsWithin<N>; ++r)
      if (const int column = (place + r * team.threads) * N; column < width) f(r, column);
  }
  // Location of gamma or beta of a row.
  __device__ __forceinline__ AnyData weights_at(unsigned char* weights, int row, int of_beta) const {
    return {weights + ((team.by_lanes ? row : 0) * 2 + of_beta) * width * static_cast<int>(sizeof(float)),
            (of_beta == 1 ? beta : gamma).dtype};
  }
  // Starts copying this thread's part of gamma and beta.
  template <typename T, int kM>
  __device__ __forceinline__ void ask_for_weights(unsigned char* weights) const {
    constexpr int N = kWide<T>;
    GPU_UNROLL
    for (int row = 0; row < kM; ++row)
      if (team.by_lanes || row == 0)
        each_run<N>(row, [&](int, int column) {
          for (int i = 0; i < 2; ++i) {
            const AnyData &from = i == 1 ? beta : gamma, to = weights_at(weights, row, i);
            if (from.data == nullptr) continue;
            const int size = from.dtype == DType::f32 ? 4 : 2;
            for (int at = column * size; at < (column + N) * size; at += 16)
              copy_async_16(static_cast<unsigned char*>(to.data) + at,
                            static_cast<const unsigned char*>(from.data) + at);
          }
        });
    copy_async_commit();
  }
};

// Called by all threads of a block; fills `rows` [kM width], leaving those from `count` on unchanged. Ends with a
// barrier. kSince: groups of copies that this thread has started since ask_for_weights().
template <typename T, int kM, int kSince>
__device__ __forceinline__ void normalize_within(const NormWithin& n, T* rows, unsigned char* weights) {
  constexpr int N = kWide<T>;
  __shared__ Sums<2 * kM> scratch[kMostThreads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32;
  const int warps = static_cast<int>(blockDim.x) / 32;
  Packed<T, N> x[kM][kRunsWithin<N>] = {}, first[kM] = {};
  GPU_UNROLL
  for (int row = 0; row < kM; ++row) {
    const T* const from = static_cast<const T*>(n.x) + row * n.width;
    if (row < n.count) first[row].load(from);
    n.each_run<N>(row, [&](int r, int column) { x[row][r].load(from + column); });
  }
  float pivot[kM];
  Sums<2 * kM> sums = {};
  GPU_UNROLL
  for (int row = 0; row < kM; ++row) {
    pivot[row] = pivot_of(first[row], n.shifts);
    n.each_run<N>(row, [&](int r, int) { add_behind(pivot[row], x[row][r], sums.at[2 * row], sums.at[2 * row + 1]); });
  }
  sums = lanes_sum(sums);
  if (!n.team.by_lanes) {
    if (lane == 0) scratch[thread / 32] = sums;
    __syncthreads();
    sums = {};
    if (lane < warps) sums = scratch[lane];
    sums = lanes_sum(sums);
  }
  copy_async_wait<kSince>();
  const float share = 1.0f / static_cast<float>(n.width);
  GPU_UNROLL
  for (int row = 0; row < kM; ++row) {
    const Spread s = spread_of(sums.at[2 * row], sums.at[2 * row + 1], n.shifts, share, n.epsilon);
    n.each_run<N>(row, [&](int r, int column) {
      float gamma[N], beta[N] = {}, y[N];
      n.weights_at(weights, row, 0).load(gamma, column);
      if (n.beta.data != nullptr) n.weights_at(weights, row, 1).load(beta, column);
      GPU_UNROLL
      for (int i = 0; i < N; ++i)
        y[i] = (x[row][r][i] - pivot[row] - s.shift) * s.inverse * (gamma[i] + n.offset) + beta[i];
      put_run(rows + row * n.width + column, y, false);
    });
  }
  __syncthreads();
}

// For a norm call that is replaced by it; nothing if rows are too long or not aligned to 16 bytes.
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
