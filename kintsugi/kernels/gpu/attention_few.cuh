// Attention of few rows, as in decoding: one block per row, which reads the visible keys and values once. Groups of
// adjacent lanes process one key each, with some columns per lane; each group runs an online softmax over its keys, and
// the block merges them at the end. Very many keys are split over several blocks. The kernel can also append a token's
// own key and value to the cache, after applying rotary embedding. Each thread copies what it reads to its own shared
// memory, kFewAhead rounds ahead, and prefetches the first rounds before the kernel that produces the query has
// finished.
#include "kintsugi/kernels/gpu/attention_common.h"
#include "kintsugi/kernels/gpu/fast_math.h"
#include "kintsugi/kernels/gpu/rotary_turns.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kFewThreads = 256, kJoinThreads = 128;
constexpr int kFewTogether = 4;                   // keys per lane and round, with their values
constexpr int kFewAhead = kCopiesBeside ? 2 : 1;  // rounds to prefetch
constexpr size_t kFewShared = size_t{16} * kFewThreads * kFewAhead * kFewTogether * 2;

// Computes an address at this point, rather than after a later wait where it is used.
template <typename T>
__device__ __forceinline__ T* worked_out(T* at) {
#if defined(__CUDACC__)
  asm volatile("" : "+l"(at));
#endif
  return at;
}

__device__ __forceinline__ float natural_exp(float x) {
  return fast_exp2(kLog2E * x);
}

// Online softmax state: maximum score, sum of exponentials relative to it, and weighted sum of values.
template <int N>
struct Running {
  float top = -INFINITY, sum = 0, o[N] = {};

  __device__ __forceinline__ void rise_to(float high) {
    const float shrink = high == -INFINITY ? 1 : natural_exp(top - high);
    top = high, sum *= shrink;
    GPU_UNROLL
    for (int i = 0; i < N; ++i) o[i] *= shrink;
  }
};

// What is appended to keys and values, for a single position: rows [batch kv_heads head_dim].
struct Appended {
  const void *k = nullptr, *v = nullptr;
  KeyStrides k_at = {}, v_at = {};
  void *keys = nullptr, *values = nullptr;  // destination: same as a.k and a.v
  RotaryTurns<128> turns = {};              // rotary embedding of q and k; no pairs: none
  bool interleaved = false;
};

// Consecutive blocks of keys of a row, and the partial result of each.
struct FewCuts {
  int count = 1, keys = 0;  // keys: per block
  float* parts = nullptr;   // [batch kv_heads rows count, head_dim + 2]
};
static_assert(sizeof(AttentionCall) + sizeof(Appended) + sizeof(FewCuts) + 16 <= 4096);  // limit on kernel arguments

// N elements of a row from `column`, with rotary embedding applied. Interleaved: pairs are adjacent; else a pair has
// one element in each half.
template <typename T, int N>
__device__ __forceinline__ Packed<T, N> turned(const T* row, int column, int half, bool interleaved,
                                               const float* cosines, const float* sines) {
  Packed<T, N> whole;
  whole.load(row + column);
  if (column >= 2 * half) return whole;
  auto own = std::bit_cast<Vec<T, N>>(whole.words);
  if (interleaved) {
    GPU_UNROLL
    for (int i = 0; i < N; i += 2) turn_pair(own[i], own[i + 1], cosines[(column + i) / 2], sines[(column + i) / 2]);
  } else {
    const bool second = column >= half;
    const int pair = second ? column - half : column;
    Packed<T, N> other;
    other.load(row + (second ? pair : column + half));
    const auto of_pair = std::bit_cast<Vec<T, N>>(other.words);
    GPU_UNROLL
    for (int i = 0; i < N; ++i) {
      T p = second ? of_pair[i] : own[i], q = second ? own[i] : of_pair[i];
      turn_pair(p, q, cosines[pair + i], sines[pair + i]);
      own[i] = second ? q : p;
    }
  }
  whole.words = std::bit_cast<decltype(whole.words)>(own);
  return whole;
}

// kLanes lanes per key, N columns each. early: visibility is known before the preceding kernel has finished;
// early_keys: so are the existing keys and values. kCut: a block processes part of the keys of a row.
template <typename T, int kLanes, bool kAppends, bool kCut>
__global__ void __launch_bounds__(kFewThreads, 2)
    attention_by_rows(AttentionCall a, Appended n, FewCuts cuts, bool early, bool early_keys) {
  constexpr int N = kWide<T>, kGroups = kFewThreads / kLanes, kWarps = kFewThreads / 32;
  constexpr int kRound = kGroups * kFewTogether;
  GPU_DYNAMIC_SHARED(unsigned char, shared);
  __shared__ float tops[kWarps], sums[kWarps], parts[kWarps][kLanes * N];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % kLanes, group = thread / kLanes;
  const int all_rows = static_cast<int>(blockIdx.x) / (kCut ? cuts.count : 1);
  const int cut = kCut ? static_cast<int>(blockIdx.x) % cuts.count : 0;
  const int head = all_rows / a.rows, r = all_rows % a.rows;
  const int b = head / a.kv_heads, h = head % a.kv_heads, column = lane * N;
  const T* const keys = static_cast<const T*>(a.k) + b * a.k_at.batch + h * a.k_at.kv_head + column;
  const T* const values = static_cast<const T*>(a.v) + b * a.v_at.batch + h * a.v_at.kv_head + column;
  const bool there = column < a.head_dim;
  AttentionRow row = {};
  __shared__ float cosines[kAppends ? 128 : 1], sines[kAppends ? 128 : 1];
  int new_key = -1;  // index of the appended key
  int new_at = -1;   // its position among the keys below, if visible
  // The local keys visible to the row in this block: their total; the number of runs of adjacent keys; beginning and
  // length of the first run. For later runs: where each begins, and the number of keys up to its end.
  int all_keys = 0, runs = 0, first = 0, in_first = 0;
  __shared__ int run_begins[LocalIndex::kMost], run_ends[LocalIndex::kMost];
  const auto see = [&] {
    row = sight_of(a, b, r);
    if constexpr (kAppends) {
      const int64_t place = a.queries[0] + (a.moved ? a.later->position : 0);
      new_key = static_cast<int>(a.key_index.local_of(place));
      for (int i = thread; i < n.turns.half; i += kFewThreads) n.turns.angle(i, place, cosines[i], sines[i]);
    }
    const bool is_head = a.heads[h] >= 0;
    GPU_ROLL
    for (int i = 0; i < a.key_index.count; ++i) {
      const int64_t global = a.key_index.global[i], from = a.key_index.begin[i] - global;
      int64_t begin = std::max(a.key_index.begin[i], row.first + from),
              end = std::min(a.key_index.begin[i + 1], row.last + 1 + from);
      if constexpr (kCut) {
        begin = std::max<int64_t>(begin, cut * cuts.keys);
        end = std::min<int64_t>(end, (cut + 1) * cuts.keys);
      }
      if (begin >= end || global < 0 || !is_head) continue;
      if (new_key >= begin && new_key < end) new_at = all_keys + new_key - static_cast<int>(begin);
      all_keys += static_cast<int>(end - begin);
      if (runs == 0)
        first = static_cast<int>(begin), in_first = all_keys;
      else if (thread == 0)
        run_begins[runs] = static_cast<int>(begin), run_ends[runs] = all_keys;
      ++runs;
    }
    if (runs > 1 || (kAppends && n.turns.half > 0)) __syncthreads();
  };
  // Index of this thread's key after `done` keys; clamped to the last one.
  const auto own_at = [&](int done, int t) { return std::min(done + t * kGroups + group, all_keys - 1); };
  const auto key_at = [&](int i) {
    if (i < in_first) return first + i;
    int run = 1;
    while (i >= run_ends[run]) ++run;
    return run_begins[run] + i - (run == 1 ? in_first : run_ends[run - 1]);
  };
  int asked = 0, place = 0;  // keys requested; slot of a round in shared memory
  const auto slot = [&](int t) { return shared + 16 * (thread + kFewThreads * 2 * (t + kFewTogether * place)); };
  const auto load = [&] {
    if (asked < all_keys && there) {
      GPU_UNROLL
      for (int t = 0; t < kFewTogether; ++t) {
        const int at = own_at(asked, t), key = key_at(at);
        if (kAppends && at == new_at) continue;
        copy_async_16(slot(t), keys + key * a.k_at.key);
        copy_async_16(slot(t) + 16 * kFewThreads, values + key * a.v_at.key);
      }
    }
    copy_async_commit();
    asked += kRound;
    place = (place + 1) % kFewAhead;
  };
  const T* const q_row = worked_out(static_cast<const T*>(a.q) + a.row_of(a.q_at, b, h, r));
  T* const o_row = worked_out(static_cast<T*>(a.out) + a.row_of(a.o_at, b, h, r));
  float* const lse = worked_out(a.lse + a.row_of(a.lse_at, b, h, r));
  const T *k_row = nullptr, *v_row = nullptr;
  if constexpr (kAppends) {
    k_row = worked_out(static_cast<const T*>(n.k) + b * n.k_at.batch + h * n.k_at.kv_head);
    v_row = worked_out(static_cast<const T*>(n.v) + b * n.v_at.batch + h * n.v_at.kv_head + column);
  }
  if (!early) wait_for_kernels_before();
  see();
  if (!early_keys) wait_for_kernels_before();
  GPU_ROLL
  for (int i = 0; i < kFewAhead; ++i) load();
  wait_for_kernels_before();
  let_next_begin();

  Packed<T, N> q = {}, k_here = {}, v_here = {};
  if constexpr (kAppends) {
    if (there) {
      v_here.load(v_row);
      q = turned<T, N>(q_row, column, n.turns.half, n.interleaved, cosines, sines);
      k_here = turned<T, N>(k_row, column, n.turns.half, n.interleaved, cosines, sines);
    }
  } else {
    if (there) q.load(q_row + column);
  }
  Running<N> all;
  for (int done = 0; done < all_keys; done += kRound) {
    copy_async_wait<kFewAhead - 1>();
    if (kAppends && there && new_at >= done) {
      GPU_UNROLL
      for (int t = 0; t < kFewTogether; ++t) {
        if (own_at(done, t) != new_at) continue;
        *reinterpret_cast<decltype(k_here.words)*>(slot(t)) = k_here.words;
        *reinterpret_cast<decltype(v_here.words)*>(slot(t) + 16 * kFewThreads) = v_here.words;
      }
    }
    const auto get = [&](int t, int offset) {
      Packed<T, N> x = {};
      if (there) x.load(reinterpret_cast<const T*>(slot(t) + offset));
      return x;
    };
    Sums<kFewTogether> s = {};
    GPU_UNROLL
    for (int t = 0; t < kFewTogether; ++t) {
      const Packed<T, N> k = get(t, 0);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) s.at[t] += q[i] * k[i];
    }
    for (int mask = 1; mask < kLanes; mask *= 2) s = s + shuffle_xor(s, mask);
    GPU_UNROLL
    for (int t = 0; t < kFewTogether; ++t) s.at[t] *= a.scale;
    if (a.softcap > 0) {
      GPU_UNROLL
      for (int t = 0; t < kFewTogether; ++t) s.at[t] = a.softcap * fast_tanh(s.at[t] / a.softcap);
    }
    if (a.key_starts != nullptr) {
      GPU_UNROLL
      for (int t = 0; t < kFewTogether; ++t)
        if (a.document_of_key(b, key_at(own_at(done, t))) != row.document) s.at[t] = -INFINITY;
    }
    float high = all.top;
    GPU_UNROLL
    for (int t = 0; t < kFewTogether; ++t) {
      if (done + t * kGroups + group >= all_keys) s.at[t] = -INFINITY;
      high = fmaxf(high, s.at[t]);
    }
    all.rise_to(high);
    GPU_UNROLL
    for (int t = 0; t < kFewTogether; ++t) {
      const float p = s.at[t] == -INFINITY ? 0 : natural_exp(s.at[t] - high);
      all.sum += p;
      const Packed<T, N> v = get(t, 16 * kFewThreads);
      GPU_UNROLL
      for (int i = 0; i < N; ++i) all.o[i] += p * v[i];
    }
    load();
  }
  if constexpr (kAppends) {
    if (r == 0 && group == 0 && there && new_key >= 0 && (!kCut || new_key / cuts.keys == cut)) {
      const auto append = [&](void* to, const KeyStrides& at, const Packed<T, N>& x) {
        T* const place = static_cast<T*>(to) + b * at.batch + h * at.kv_head + new_key * at.key + column;
        *reinterpret_cast<decltype(x.words)*>(place) = x.words;
      };
      append(n.keys, a.k_at, k_here), append(n.values, a.v_at, v_here);
    }
  }

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
  if (thread >= a.head_dim) return;
  float top = -INFINITY, sum = 0, shrink[kWarps];
  GPU_UNROLL
  for (int w = 0; w < kWarps; ++w) top = fmaxf(top, tops[w]);
  GPU_UNROLL
  for (int w = 0; w < kWarps; ++w) {
    shrink[w] = tops[w] == -INFINITY ? 0 : natural_exp(tops[w] - top);
    sum += sums[w] * shrink[w];
  }
  if constexpr (kCut) {
    float* const part = cuts.parts + static_cast<int64_t>(blockIdx.x) * (a.head_dim + 2);
    if (thread == 0) part[a.head_dim] = top, part[a.head_dim + 1] = sum;
    for (int d = thread; d < a.head_dim; d += kFewThreads) {
      float o = 0;
      GPU_UNROLL
      for (int w = 0; w < kWarps; ++w) o += parts[w][d] * shrink[w];
      part[d] = o;
    }
    return;
  }
  const RowEnd end = end_row(a, top, sum, row, h, r % a.group);
  if (thread == 0) put(lse, end.lse, a.add[1]);
  for (int d = thread; d < a.head_dim; d += kFewThreads) {
    float o = 0;
    GPU_UNROLL
    for (int w = 0; w < kWarps; ++w) o += parts[w][d] * shrink[w];
    put(o_row + d, o * end.factor, a.add[0]);
  }
}

// Merges the partial results of a row's blocks.
template <typename T>
__global__ void __launch_bounds__(kJoinThreads) attention_join_cuts(AttentionCall a, FewCuts cuts) {
  const int head = static_cast<int>(blockIdx.x) / a.rows, r = static_cast<int>(blockIdx.x) % a.rows;
  const int b = head / a.kv_heads, h = head % a.kv_heads, step = a.head_dim + 2, thread = static_cast<int>(threadIdx.x);
  const float* const parts = cuts.parts + static_cast<int64_t>(blockIdx.x) * cuts.count * step;
  wait_for_kernels_before();
  let_next_begin();
  float top = -INFINITY, sum = 0;
  for (int cut = 0; cut < cuts.count; ++cut) top = fmaxf(top, parts[cut * step + a.head_dim]);
  const auto shrink = [&](int cut) {
    const float own = parts[cut * step + a.head_dim];
    return own == -INFINITY ? 0 : natural_exp(own - top);
  };
  for (int cut = 0; cut < cuts.count; ++cut) sum += parts[cut * step + a.head_dim + 1] * shrink(cut);
  const RowEnd end = end_row(a, top, sum, sight_of(a, b, r), h, r % a.group);
  if (thread == 0) put(a.lse + a.row_of(a.lse_at, b, h, r), end.lse, a.add[1]);
  T* const to = static_cast<T*>(a.out) + a.row_of(a.o_at, b, h, r);
  for (int d = thread; d < a.head_dim; d += kJoinThreads) {
    float o = 0;
    for (int cut = 0; cut < cuts.count; ++cut) o += parts[cut * step + d] * shrink(cut);
    put(to + d, o * end.factor, a.add[0]);
  }
}

// Launches the kernel if the operands fit, including what it appends. Returns false, with nothing done, if they do not.
bool launch_few(const KernelCall& call, const AttentionCall& a, const Appended* appended) {
  using In = kernels::AttentionIn;
  const View &q = call.ins[In::kQ], &o = call.outs[kernels::AttentionOut::kO],
             &lse = call.outs[kernels::AttentionOut::kLse];
  if (a.rows > kFewRows || a.keep > 0 || o.dtype() != q.dtype()) return false;
  const Appended n = appended == nullptr ? Appended() : *appended;
  bool done = false;
  dispatch("attention", q.dtype(), [&]<typename T>(T) {
    constexpr int N = kWide<T>;
    if (a.head_dim % N != 0 || a.head_dim > 32 * N || !all_wide(a.q, a.k, a.v, n.k, n.v)) return;
    for (const int64_t apart : {a.q_at.batch, a.q_at.seq, a.q_at.kv_head, a.q_at.group, a.k_at.batch, a.k_at.key,
                                a.k_at.kv_head, a.v_at.batch, a.v_at.key, a.v_at.kv_head, n.k_at.batch, n.k_at.kv_head,
                                n.v_at.batch, n.v_at.kv_head, int64_t{n.turns.half}})
      if (apart % N != 0) return;
    done = true;
    const bool early = a.starts == nullptr && unwritten(*call.stream, {bytes_at(call.later, sizeof(Numbers))});
    const bool early_keys = early && unwritten(*call.stream, {bytes_of(call.ins[In::kK]), bytes_of(call.ins[In::kV])});
    const FewCuts cuts = {few_cuts(a), kFewKeys, reinterpret_cast<float*>(call.workspace.data())};
    const bool cut = cuts.count > 1;
    const std::vector<device::Stream::Bytes> made = {bytes_of(o), bytes_of(lse)};
    std::vector<device::Stream::Bytes> written = cut ? std::vector{bytes_at(cuts.parts, few_bytes(a))} : made;
    if (appended != nullptr)
      for (const size_t cache : {In::kK, In::kV}) written.push_back(bytes_of(call.ins[cache]));
    const auto rows = static_cast<unsigned>(a.batch * a.kv_heads * a.rows);
    const auto of = [&]<int kLanes>(std::integral_constant<int, kLanes>) {
      launch_overlapping(
          *call.stream, dim3(rows * static_cast<unsigned>(cuts.count)), dim3(kFewThreads), kFewShared,
          std::move(written),
          appended == nullptr
              ? (cut ? attention_by_rows<T, kLanes, false, true> : attention_by_rows<T, kLanes, false, false>)
              : (cut ? attention_by_rows<T, kLanes, true, true> : attention_by_rows<T, kLanes, true, false>),
          a, n, cuts, early, early_keys);
    };
    a.head_dim <= 8 * N    ? of(std::integral_constant<int, 8>())
    : a.head_dim <= 16 * N ? of(std::integral_constant<int, 16>())
                           : of(std::integral_constant<int, 32>());
    if (cut) launch_overlapping(*call.stream, dim3(rows), dim3(kJoinThreads), 0, made, attention_join_cuts<T>, a, cuts);
  });
  return done;
}

// The call of a kind that produces the memory at `data`; null: none.
const KernelCall* maker_of(std::span<const KernelCall> calls, std::string_view kind, const void* data) {
  for (const KernelCall& call : calls)
    if (call.kind == kind && call.outs[0].data == data) return &call;
  return nullptr;
}

}  // namespace

bool attention_of_few(const KernelCall& call, const AttentionCall& a) {
  return launch_few(call, a, nullptr);
}

// Fuses the preceding rotations of q and k, if any, and the writes of key and value to their caches.
bool attention_together(std::span<const KernelCall> calls) {
  using In = kernels::AttentionIn;
  const KernelCall& own = calls.back();
  const std::span<const KernelCall> before = calls.first(calls.size() - 1);
  const View &q = own.ins[In::kQ], &keys = own.ins[In::kK], &values = own.ins[In::kV];
  const KernelCall* const k_write = maker_of(before, "cache_write", keys.data);
  const KernelCall* const v_write = maker_of(before, "cache_write", values.data);
  if (k_write == nullptr || v_write == nullptr || k_write == v_write || q.size("seq") != 1) return false;
  AttentionCall a = forward_call(own);
  Appended n;
  View x = k_write->ins[1];
  const KernelCall* const k_turn = maker_of(before, "rotary", x.data);
  const KernelCall* const q_turn = maker_of(before, "rotary", q.data);
  if (k_turn != nullptr || q_turn != nullptr) {
    if (k_turn == nullptr || q_turn == nullptr || k_turn == q_turn || !(k_turn->attributes == q_turn->attributes) ||
        !fill_turns(n.turns, *k_turn) || !(q_turn->ins[0].type == q.type) || !(k_turn->ins[0].type == x.type) ||
        k_turn->accumulates(0) || q_turn->accumulates(0))
      return false;
    n.interleaved = k_turn->attributes.integer("interleaved") != 0;
    a.q = q_turn->ins[0].data, x = k_turn->ins[0];
  }
  if (before.size() != (k_turn == nullptr ? 2 : 4)) return false;
  const auto same = [&](const KernelCall& call) {
    return call.moved == own.moved && call.index("seq").segments() == own.index("seq").segments();
  };
  for (const KernelCall& call : before)
    if (!same(call) || call.index("seq").segments()[0].global < 0) return false;
  for (const KernelCall* write : {k_write, v_write})
    if (write->ins[0].data != write->outs[0].data || write->ins[0].dtype() != q.dtype() ||
        write->ins[1].dtype() != q.dtype() || !(write->ins[0].type == write->outs[0].type))
      return false;
  const View& v = v_write->ins[1];
  n.k = x.data, n.v = v.data, n.k_at = key_strides(x), n.v_at = key_strides(v);
  n.keys = keys.data, n.values = values.data;
  return launch_few(own, a, &n);
}

}  // namespace kintsugi::KINTSUGI_GPU
