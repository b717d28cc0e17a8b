// Attention of few rows, as of a token that is generated: a block for each row, which reads the keys that the row sees
// and their values once. Some lanes side by side have a key, and each some columns of it; the softmax runs over the
// keys of these lanes, and is joined in the block at the end.
#include "kintsugi/kernels/gpu/attention_common.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kFewThreads = 256, kFewRows = 8;

// A softmax that runs: the largest score, the sum of exponentials relative to it, and the same for values.
template <int N>
struct Running {
  float top = -INFINITY, sum = 0, o[N] = {};

  __device__ __forceinline__ void rise_to(float high) {
    const float shrink = high == -INFINITY ? 1 : expf(top - high);
    top = high, sum *= shrink;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) o[i] *= shrink;
  }
};

// kLanes have a key, N columns each. early: what the row sees is known before the kernel before has ended.
template <typename T, int kLanes>
__global__ void __launch_bounds__(kFewThreads, 2) attention_by_rows(AttentionCall a, bool early) {
  constexpr int N = kWide<T>, kGroups = kFewThreads / kLanes, kWarps = kFewThreads / 32;
  constexpr int kTogether = 4;  // keys of a lane under way, with their values
  __shared__ float tops[kWarps], sums[kWarps], parts[kWarps][kLanes * N];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, group = thread / kLanes;
  const int head = static_cast<int>(blockIdx.x) / a.rows, r = static_cast<int>(blockIdx.x) % a.rows;
  const int b = head / a.kv_heads, h = head % a.kv_heads, column = lane * N;
  const T* const keys = static_cast<const T*>(a.k) + b * a.k_at.batch + h * a.k_at.kv_head + column;
  const T* const values = static_cast<const T*>(a.v) + b * a.v_at.batch + h * a.v_at.kv_head + column;
  const bool there = column < a.head_dim;
  // Calls f(begin, end) with the local keys, run by run, among which are all that a row sees.
  const auto over_seen = [&](const AttentionRow& row, const auto& f) {
    for (int i = 0; i < a.key_index.count && a.heads[h] >= 0; ++i) {
      if (a.key_index.global[i] < 0) continue;
      const int64_t from = a.key_index.begin[i] - a.key_index.global[i];
      const int64_t begin = std::max(a.key_index.begin[i], row.first + from),
                    end = std::min(a.key_index.begin[i + 1], row.last + 1 + from);
      if (begin < end) f(static_cast<int>(begin), static_cast<int>(end));
    }
  };
  AttentionRow row = {};
  if (early) row = sight_of(a, b, r);
  if (early && r == 0) {
    constexpr int kLine = 128 / static_cast<int>(sizeof(T));
    over_seen(row, [&](int begin, int end) {
      for (int key = begin + group; key < end; key += kGroups)
        if (there && column % kLine == 0)
          prefetch_line(keys + key * a.k_at.key), prefetch_line(values + key * a.v_at.key);
    });
  }
  wait_for_kernels_before();
  let_next_begin();

  Packed<T, N> q = {};
  if (there) q.load(static_cast<const T*>(a.q) + a.row_of(a.q_at, b, h, r) + column);
  if (!early) row = sight_of(a, b, r);
  Running<N> all;
  over_seen(row, [&](int begin, int end) {
    for (int first = begin; first < end; first += kGroups * kTogether) {
      Packed<T, N> k[kTogether], v[kTogether];
      GPU_UNROLL
      for (int t = 0; t < kTogether; ++t) {
        const int key = std::min(first + t * kGroups + group, end - 1);
        k[t] = {}, v[t] = {};
        if (there) k[t].load(keys + key * a.k_at.key), v[t].load(values + key * a.v_at.key);
      }
      Sums<kTogether> s = {};
      GPU_UNROLL
      for (int t = 0; t < kTogether; ++t) GPU_UNROLL
      for (int i = 0; i < N; ++i) s.at[t] += q[i] * k[t][i];
      for (int mask = 1; mask < kLanes; mask *= 2) s = s + shuffle_xor(s, mask);
      float high = all.top;
      GPU_UNROLL
      for (int t = 0; t < kTogether; ++t) {
        const int key = first + t * kGroups + group;
        s.at[t] = a.softcap > 0 ? a.softcap * tanhf(s.at[t] * a.scale / a.softcap) : s.at[t] * a.scale;
        if (key >= end || a.document_of_key(b, key) != row.document) s.at[t] = -INFINITY;
        high = fmaxf(high, s.at[t]);
      }
      all.rise_to(high);
      GPU_UNROLL
      for (int t = 0; t < kTogether; ++t) {
        const float p = s.at[t] == -INFINITY ? 0 : expf(s.at[t] - high);
        all.sum += p;
        GPU_UNROLL
        for (int i = 0; i < N; ++i) all.o[i] += p * v[t][i];
      }
    }
  });

  for (int mask = kLanes; mask < 32; mask *= 2) {
    const float other = shuffle_xor(all.top, mask);
    all.rise_to(fmaxf(all.top, other));
    all.sum += shuffle_xor(all.sum, mask);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) all.o[i] += shuffle_xor(all.o[i], mask);
  }
  const int warp = thread / 32;
  if (thread % 32 == 0) tops[warp] = all.top, sums[warp] = all.sum;
  if (thread % 32 < kLanes) {
    GPU_UNROLL
    for (int i = 0; i < N; ++i) parts[warp][column + i] = all.o[i];
  }
  __syncthreads();
  float top = -INFINITY, sum = 0, shrink[kWarps];
  GPU_UNROLL
  for (int w = 0; w < kWarps; ++w) top = fmaxf(top, tops[w]);
  GPU_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    shrink[w] = tops[w] == -INFINITY ? 0 : expf(tops[w] - top);
    sum += sums[w] * shrink[w];
  }
  const RowEnd end = end_row(a, top, sum, row, h, r % a.group);
  if (thread == 0) put(a.lse + a.row_of(a.lse_at, b, h, r), end.lse, a.add[1]);
  T* const to = static_cast<T*>(a.out) + a.row_of(a.o_at, b, h, r);
  for (int d = thread; d < a.head_dim; d += kFewThreads) {
    float o = 0;
    GPU_UNROLL
    for (int w = 0; w < kWarps; ++w) o += parts[w][d] * shrink[w];
    put(to + d, o * end.factor, a.add[0]);
  }
}

}  // namespace

bool attention_of_few(const KernelCall& call, const AttentionCall& a) {
  using In = kernels::AttentionIn;
  const View &q = call.ins[In::kQ], &o = call.outs[kernels::AttentionOut::kO],
             &lse = call.outs[kernels::AttentionOut::kLse];
  if (a.rows > kFewRows || a.keep > 0 || o.dtype() != q.dtype()) return false;
  bool done = false;
  dispatch("attention", q.dtype(), [&]<typename T>(T) {
    constexpr int N = kWide<T>;
    if (a.head_dim % N != 0 || a.head_dim > 32 * N || !all_wide(a.q, a.k, a.v)) return;
    for (const int64_t apart : {a.q_at.batch, a.q_at.seq, a.q_at.kv_head, a.q_at.group, a.k_at.batch, a.k_at.key,
                                a.k_at.kv_head, a.v_at.batch, a.v_at.key, a.v_at.kv_head})
      if (apart % N != 0) return;
    done = true;
    const bool early = a.starts == nullptr && unwritten(*call.stream, {bytes_at(call.later, sizeof(Numbers))});
    const auto of = [&]<int kLanes>(std::integral_constant<int, kLanes>) {
      launch_overlapping(*call.stream, dim3(static_cast<unsigned>(a.batch * a.kv_heads * a.rows)), dim3(kFewThreads), 0,
                         {bytes_of(o), bytes_of(lse)}, attention_by_rows<T, kLanes>, a, early);
    };
    a.head_dim <= 8 * N    ? of(std::integral_constant<int, 8>())
    : a.head_dim <= 16 * N ? of(std::integral_constant<int, 16>())
                           : of(std::integral_constant<int, 32>());
  });
  return done;
}

}  // namespace kintsugi::KINTSUGI_GPU
