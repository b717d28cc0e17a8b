// The gradient of attention: Dao 2023, "FlashAttention-2", section 3.1, algorithm 2, in two passes without atomics: a
// block of keys goes over all queries for dk and dv, a block of queries over all keys for dq; both make the scores
// again. With D = sum of do * o over a row, and dropout's factor m: dv = m p do, dscore = p (m (do.v) - D).
#include "kintsugi/kernels/gpu/attention_tile.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// lse and D of every row, by kLanes lanes that take N elements at a time; a block for each tile of rows.
template <typename T, int N, int kLanes>
__global__ __launch_bounds__(256) void attention_delta(AttentionCall a) {
  constexpr int kAtOnce = 256 / kLanes;  // rows
  const int lane = static_cast<int>(threadIdx.x) % kLanes, group = static_cast<int>(threadIdx.x) / kLanes;
  const int head = static_cast<int>(blockIdx.x) / a.row_tiles, tile = static_cast<int>(blockIdx.x) % a.row_tiles;
  const int b = head / a.kv_heads, h = head % a.kv_heads;
  GPU_UNROLL
  for (int i = 0; i < kSightTile; i += kAtOnce) {
    const int r = tile * kSightTile + i + group, inside = std::min(r, a.rows - 1);
    const T* const o = static_cast<const T*>(a.o) + a.row_of(a.o_at, b, h, inside);
    const T* const d_o = static_cast<const T*>(a.d_o) + a.row_of(a.do_at, b, h, inside);
    float sum = 0;
    for (int d = lane * N; d < a.head_dim; d += kLanes * N) {
      const auto x = *reinterpret_cast<const Vec<T, N>*>(o + d), y = *reinterpret_cast<const Vec<T, N>*>(d_o + d);
      GPU_UNROLL
      for (int j = 0; j < N; ++j) sum += widen(x[j]) * widen(y[j]);
    }
    for (int mask = kLanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if (lane != 0) continue;
    const float lse = r < a.rows ? a.lse[a.row_of(a.lse_at, b, h, r)] : -INFINITY;
    Vec<float, 2>& made = a.lse_delta[static_cast<int64_t>(head) * a.row_tiles * kSightTile + r];
    if (lse == -INFINITY) {
      made = {INFINITY, 0};  // then p is 0
    } else {
      made = {lse * kLog2E, sum};
    }
  }
}

// lse as libraries have it, [batch heads seq].
__global__ void __launch_bounds__(kPieceThreads) pack_lse(AttentionCall a, float* to, int64_t count) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const int s = static_cast<int>(i % a.seq), head = static_cast<int>(i / a.seq % (a.kv_heads * a.group));
    const int b = static_cast<int>(i / a.seq / (a.kv_heads * a.group));
    to[i] = a.lse[a.row_of(a.lse_at, b, head / a.group, s * a.group + head % a.group)];
  }
}

// A block for each sink. dsinks: [kv_heads group]
template <typename T>
__global__ __launch_bounds__(256) void attention_grad_sinks(AttentionCall a, T* dsinks, bool add) {
  __shared__ double scratch[32];
  const int h = static_cast<int>(blockIdx.x) / a.group, g = static_cast<int>(blockIdx.x) % a.group;
  double sum = 0;
  if (a.sinks != nullptr && a.heads[h] >= 0) {
    const float sink = a.sink(h, g) * kLog2E;
    for (int b = 0; b < a.batch; ++b) {
      const auto* const of_head = a.lse_delta + static_cast<int64_t>(b * a.kv_heads + h) * a.row_tiles * kSightTile;
      for (int s = static_cast<int>(threadIdx.x); s < a.seq; s += 256) {
        const Vec<float, 2> row = of_head[s * a.group + g];
        if (a.row_info(b, s * a.group + g).place >= 0) sum -= static_cast<double>(exp2f(sink - row[0]) * row[1]);
      }
    }
  }
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) put(dsinks + blockIdx.x, static_cast<float>(sum), add);
}

// p of a score that is not yet scaled.
struct ScoreOf {
  float scale, softcap, to_log2;  // to_log2: of what is scaled, or capped

  __device__ float capped(float dot) const { return softcap * fast_tanh(dot * scale / softcap); }
  // The derivative of capping, where p = 2^(log2(e) score - lse).
  __device__ float slope(float p, float lse) const {
    const float part = p > 0 ? (log2f(p) + lse) * kLn2 / softcap : 0;
    return 1 - part * part;
  }
};
__device__ inline ScoreOf score_of(const AttentionCall& a, bool more) {
  return {a.scale, a.softcap, more && a.softcap > 0 ? kLog2E : a.scale * kLog2E};
}
// With dropout, p is negative where it is dropped.
__device__ __forceinline__ float kept_part(const AttentionCall& a, float p) {
  return p > 0 ? p * a.keep : 0;
}
// dscore / scale, of p, do.v, and log2(e) lse and D of the row.
template <bool kMore>
__device__ __forceinline__ float dscore(const AttentionCall& a, const ScoreOf& score, float p, float dp, float lse,
                                        float delta) {
  if constexpr (!kMore) return p * (dp - delta);
  if (a.keep > 0) dp = p > 0 ? dp * a.keep : 0;
  p = fabsf(p);
  return p * (dp - delta) * (a.softcap > 0 ? score.slope(p, lse) : 1);
}

enum : int { kMakeDk = 1, kMakeDv = 2 };

// A block makes dk and dv of 16 kWarps keys of one head, a warp of 16 of them; its scores are [keys queries]. kMore:
// with capped scores or dropout; kBlocks: that share a processor where units take operands from shared memory.
template <typename T, int kHead, int kWarps, int kMostStep, int kBlocks, int kMake, bool kMore>
__global__ __launch_bounds__(32 * kWarps, KINTSUGI_FOUR_WARPS ? kBlocks : 1) void attention_grad_keys(AttentionCall a) {
  // Queries at a time: as many as registers allow, which left operands take too where units do not read them from
  // memory.
  constexpr int kStep = kHead == 128 && !KINTSUGI_FOUR_WARPS ? 32 : kMostStep;
  constexpr int kKeys = 16 * kWarps, kThreads = 32 * kWarps, kN = kStep / 8, kPer = kSightTile / kStep;
  constexpr int kKeyTiles = kKeys / kSightTile;
  GPU_DYNAMIC_SHARED(T, shared);
  T *const k = shared, *const v = k + kKeys * kHead, *const q = v + kKeys * kHead, *const d_o = q + 2 * kStep * kHead;
  auto* const rows =
      reinterpret_cast<Vec<float, 4>*>(d_o + 2 * kStep * kHead);  // lse and D of two neighbours: [2, kStep / 2]
  unsigned char* const seen = reinterpret_cast<unsigned char*>(rows + kStep);
  const int tiles = (a.keys + kKeys - 1) / kKeys;
  const int head = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const int b = head / a.kv_heads, h = head % a.kv_heads;

  const auto copy = [&](int step, int buffer) {
    copy_tile<kHead, kStep, kThreads>(q + buffer * kStep * kHead, a.head_dim, [&](int i) {
      return static_cast<const T*>(a.q) + a.row_of(a.q_at, b, h, std::min(step * kStep + i, a.rows - 1));
    });
    copy_tile<kHead, kStep, kThreads>(d_o + buffer * kStep * kHead, a.head_dim, [&](int i) {
      return static_cast<const T*>(a.d_o) + a.row_of(a.do_at, b, h, std::min(step * kStep + i, a.rows - 1));
    });
    if (const int i = static_cast<int>(threadIdx.x); i < kStep / 2)
      copy_async_16(rows + buffer * (kStep / 2) + i,
                    a.lse_delta + static_cast<int64_t>(head) * a.row_tiles * kSightTile + step * kStep + 2 * i);
    copy_async_commit();
  };
  const auto key_of = [&](int i) { return std::min(tile * kKeys + i, a.keys - 1); };
  copy_tile<kHead, kKeys, kThreads>(k, a.head_dim, [&](int i) {
    return static_cast<const T*>(a.k) + b * a.k_at.batch + h * a.k_at.kv_head + key_of(i) * a.k_at.key;
  });
  copy_tile<kHead, kKeys, kThreads>(v, a.head_dim, [&](int i) {
    return static_cast<const T*>(a.v) + b * a.v_at.batch + h * a.v_at.kv_head + key_of(i) * a.v_at.key;
  });
  copy_async_commit();
  clear_columns<kHead, kKeys, kThreads>(k, a.head_dim);
  clear_columns<kHead, kKeys, kThreads>(v, a.head_dim);
  for (int i = 0; i < 4; ++i) clear_columns<kHead, kStep, kThreads>(q + i * kStep * kHead, a.head_dim);

  const AttentionKeys keys =
      unite(a.key_tile + b * a.key_tiles + tile * kKeyTiles, std::min(kKeyTiles, a.key_tiles - tile * kKeyTiles));
  const TileRange range = list_tiles<kThreads>(a.heads[h] < 0 ? 0 : a.row_tiles, seen,
                                               [&](int t) { return seen_by(a.row_tile[b * a.row_tiles + t], keys); });
  // Of lane: keys lane / 4 and that + 8 of the warp's 16, queries 2 (lane % 4) and its neighbour of each 8. Made again
  // where they are needed: registers are short.
  const auto first_key_of = [&](int thread) { return tile * kKeys + thread / 32 * 16 + thread % 32 / 4; };
  const ScoreOf score = score_of(a, kMore);

  constexpr bool kDk = (kMake & kMakeDk) != 0, kDv = (kMake & kMakeDv) != 0;
  float dk[kDk ? kHead / 8 : 1][4] = {}, dv[kDv ? kHead / 8 : 1][4] = {};
  const int end = range.end * kPer;
  int step = range.begin * kPer, buffer = 0;
  if (step < end) copy(step, 0);
  while (step < end) {
    wait_for_tiles();
    __syncthreads();
    const int next = next_step<kPer>(seen, step + 1, end);
    if (next < end) copy(next, 1 - buffer);

    const Vec<float, 4>* const of_rows = rows + buffer * (kStep / 2) + own_thread<kHead>() % 4;
    float s[kN][4] = {}, dp[kN][4] = {};
    const auto make_p = [&] {
      if (kMore && a.softcap > 0) {
        GPU_UNROLL
        for (int n = 0; n < kN; ++n) GPU_UNROLL
        for (int i = 0; i < 4; ++i) s[n][i] = score.capped(s[n][i]);
      }
      const int thread = own_thread<kHead>(), first_key = first_key_of(thread), column = thread % 4 * 2;
      if (seen[step / kPer] != kSeenAll) {
        int place[2], document[2];
        GPU_UNROLL
        for (int half = 0; half < 2; ++half) {
          const int key = std::min(first_key + half * 8, a.key_tiles * kSightTile - 1);
          place[half] = a.key_place[key], document[half] = a.document_of_key(b, key);
        }
        const auto sees = [&](int i, int half) {
          const AttentionRow row = a.row_info(b, step * kStep + i / 2 * 8 + column + i % 2);
          return static_cast<uint32_t>(visible(row, place[half], document[half]));
        };
        const uint32_t bits = bits_of<2 * kN, 2>([&](int i) { return sees(i, 0) | sees(i, 1) << 1; });
        GPU_UNROLL
        for (int i = 0; i < 4 * kN; ++i)
          if (!(bits >> (i / 4 * 4 + i % 2 * 2 + i / 2 % 2) & 1)) s[i / 4][i % 4] = -INFINITY;
      }
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) {
        const Vec<float, 4> row = of_rows[n * 4];
        GPU_UNROLL
        for (int i = 0; i < 4; ++i) s[n][i] = fast_exp2(s[n][i] * score.to_log2 - row[i % 2 * 2]);
      }
    };
    const T *const step_q = q + buffer * kStep * kHead, *const step_do = d_o + buffer * kStep * kHead;
    if constexpr (kDk) {
      add_scores_of_both<kHead, kKeys>(s, k, step_q, dp, v, step_do, make_p);
    } else {
      add_scores<kHead, kKeys>(s, k, step_q);
      make_p();
    }
    uint32_t left[kN / 2][4];
    if (kMore && a.keep > 0) {
      const uint32_t bits = bits_of<4 * kN>([&](int i) {
        const int thread = own_thread<kHead>(), first_key = first_key_of(thread), column = thread % 4 * 2;
        const int r = std::min(step * kStep + i / 4 * 8 + column + i % 2, a.rows - 1);
        const int key = std::min(first_key + i / 2 % 2 * 8, a.key_tiles * kSightTile - 1);
        return a.kept(a.random_begin(b, h, r, a.row_info(b, r).place) + static_cast<uint64_t>(a.key_place[key]));
      });
      float kept[kN][4];
      GPU_UNROLL
      for (int i = 0; i < 4 * kN; ++i) {
        float& p = s[i / 4][i % 4];
        if (!(bits >> i & 1)) p = -p;
        kept[i / 4][i % 4] = kept_part(a, p);
      }
      pack_left<T>(left, kept);
    } else {
      pack_left<T>(left, s);
    }
    if constexpr (kDv) add_values<kHead>(dv, left, step_do);
    if constexpr (kDk) {
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) {
        const Vec<float, 4> row = of_rows[n * 4];
        GPU_UNROLL
        for (int i = 0; i < 4; ++i)
          dp[n][i] = dscore<kMore>(a, score, s[n][i], dp[n][i], row[i % 2 * 2], row[i % 2 * 2 + 1]);
      }
      pack_left<T>(left, dp);
      add_values<kHead>(dk, left, step_q);
    }
    step = next, buffer = 1 - buffer;
  }
  copy_async_wait<0>();  // where no query sees a key

  const int thread = own_thread<kHead>(), first_key = first_key_of(thread), column = thread % 4 * 2;
  GPU_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int key = first_key + half * 8;
    if (key >= a.keys) continue;
    T* const to_dk = static_cast<T*>(a.dk) + b * a.dk_at.batch + h * a.dk_at.kv_head + key * a.dk_at.key;
    T* const to_dv = static_cast<T*>(a.dv) + b * a.dv_at.batch + h * a.dv_at.kv_head + key * a.dv_at.key;
    GPU_UNROLL
    for (int n = 0; n < kHead / 8; ++n) {
      if (n * 8 >= a.head_dim) continue;
      if constexpr (kDk)
        put_two(to_dk + n * 8 + column, dk[n][half * 2] * a.scale, dk[n][half * 2 + 1] * a.scale, a.add[1]);
      if constexpr (kDv) put_two(to_dv + n * 8 + column, dv[n][half * 2], dv[n][half * 2 + 1], a.add[2]);
    }
  }
}

// A block makes dq of 16 kWarps rows of one head, a warp of 16 of them. kMayHold: q and do stay in registers, and the
// keys take the place of their tiles, but where units read them from memory: those of four warps gave wrong sums with
// held rows of 64 elements on an H100, for a reason that was not found.
template <typename T, int kHead, int kWarps, int kStep, int kBlocks, bool kMayHold, bool kMore>
__global__ __launch_bounds__(32 * kWarps, KINTSUGI_FOUR_WARPS ? kBlocks : 1) void attention_grad_rows(AttentionCall a) {
  constexpr int kRows = 16 * kWarps, kThreads = 32 * kWarps, kN = kStep / 8, kPer = kSightTile / kStep;
  constexpr int kRowTiles = kRows / kSightTile;
  constexpr bool kHeld = kMayHold && !KINTSUGI_FOUR_WARPS;
  GPU_DYNAMIC_SHARED(T, shared);
  T *const q = shared, *const d_o = q + kRows * kHead;
  T *const k = kHeld ? shared : d_o + kRows * kHead, *const v = k + 2 * kStep * kHead;
  unsigned char* const seen =
      reinterpret_cast<unsigned char*>(kHeld && kRows > 2 * kStep ? d_o + kRows * kHead : v + 2 * kStep * kHead);
  const int tiles = (a.rows + kRows - 1) / kRows, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32, head = static_cast<int>(blockIdx.x) / tiles;
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;  // those that see most begin first
  const int b = head / a.kv_heads, h = head % a.kv_heads;

  const auto* const keys = static_cast<const T*>(a.k) + b * a.k_at.batch + h * a.k_at.kv_head;
  const auto* const values = static_cast<const T*>(a.v) + b * a.v_at.batch + h * a.v_at.kv_head;
  const auto copy = [&](int step, int buffer) {
    copy_tile<kHead, kStep, kThreads>(k + buffer * kStep * kHead, a.head_dim, [&](int i) {
      return keys + std::min(step * kStep + i, a.keys - 1) * a.k_at.key;
    });
    copy_tile<kHead, kStep, kThreads>(v + buffer * kStep * kHead, a.head_dim, [&](int i) {
      return values + std::min(step * kStep + i, a.keys - 1) * a.v_at.key;
    });
    copy_async_commit();
  };
  const auto row_of = [&](int i) { return std::min(tile * kRows + i, a.rows - 1); };
  copy_tile<kHead, kRows, kThreads>(
      q, a.head_dim, [&](int i) { return static_cast<const T*>(a.q) + a.row_of(a.q_at, b, h, row_of(i)); });
  copy_tile<kHead, kRows, kThreads>(
      d_o, a.head_dim, [&](int i) { return static_cast<const T*>(a.d_o) + a.row_of(a.do_at, b, h, row_of(i)); });
  copy_async_commit();
  clear_columns<kHead, kRows, kThreads>(q, a.head_dim);
  clear_columns<kHead, kRows, kThreads>(d_o, a.head_dim);
  if (!kHeld)
    for (int i = 0; i < 4; ++i) clear_columns<kHead, kStep, kThreads>(k + i * kStep * kHead, a.head_dim);

  const AttentionRows rows =
      unite(a.row_tile + b * a.row_tiles + tile * kRowTiles, std::min(kRowTiles, a.row_tiles - tile * kRowTiles));
  wait_for_tiles();
  const TileRange range = list_tiles<kThreads>(a.heads[h] < 0 ? 0 : a.key_tiles, seen,
                                               [&](int t) { return seen_by(rows, a.key_tile[b * a.key_tiles + t]); });
  uint32_t held_q[kHead / 16][4], held_do[kHead / 16][4];
  if constexpr (kHeld) {
    hold_rows<kHead, kRows>(held_q, q, warp * 16);
    hold_rows<kHead, kRows>(held_do, d_o, warp * 16);
    __syncthreads();
    for (int i = 0; i < 4; ++i) clear_columns<kHead, kStep, kThreads>(k + i * kStep * kHead, a.head_dim);
  }
  // Of lane: rows lane / 4 and that + 8 of the warp's 16, columns 2 (lane % 4) and its neighbour of each 8.
  const int first_row = tile * kRows + warp * 16 + lane / 4, column = lane % 4 * 2;
  const ScoreOf score = score_of(a, kMore);
  Vec<float, 2> lse_delta[2];
  GPU_UNROLL
  for (int half = 0; half < 2; ++half)
    lse_delta[half] = a.lse_delta[static_cast<int64_t>(head) * a.row_tiles * kSightTile +
                                  std::min(first_row + half * 8, a.row_tiles * kSightTile - 1)];

  float dq[kHead / 8][4] = {};
  const int end = range.end * kPer;
  int step = range.begin * kPer, buffer = 0;
  if (step < end) copy(step, 0);
  while (step < end) {
    wait_for_tiles();
    __syncthreads();
    const int next = next_step<kPer>(seen, step + 1, end);
    if (next < end) copy(next, 1 - buffer);

    float s[kN][4] = {}, dp[kN][4] = {};
    const auto cap_and_hide = [&] {
      if (kMore && a.softcap > 0) {
        GPU_UNROLL
        for (int n = 0; n < kN; ++n) GPU_UNROLL
        for (int i = 0; i < 4; ++i) s[n][i] = score.capped(s[n][i]);
      }
      if (seen[step / kPer] == kSeenAll) return;
      GPU_UNROLL
      for (int half = 0; half < 2; ++half) hide(a, b, first_row + half * 8, step, column, s, half);
    };
    const auto make_p = [&] {
      cap_and_hide();
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) GPU_UNROLL
      for (int i = 0; i < 4; ++i) s[n][i] = fast_exp2(s[n][i] * score.to_log2 - lse_delta[i / 2][0]);
    };
    const T *const step_k = k + buffer * kStep * kHead, *const step_v = v + buffer * kStep * kHead;
    if constexpr (kHeld) {
      add_scores<kHead, T>(s, held_q, step_k);
      add_scores<kHead, T>(dp, held_do, step_v);
      make_p();
    } else {
      add_scores_of_both<kHead, kRows>(s, q, step_k, dp, d_o, step_v, make_p);
    }
    GPU_UNROLL
    for (int half = 0; half < 2; ++half) {
      const int r = std::min(first_row + half * 8, a.rows - 1);
      uint32_t bits = 0;
      if (kMore && a.keep > 0) {
        const uint64_t begin = a.random_begin(b, h, r, a.row_info(b, r).place);
        bits = ~bits_of<2 * kN>([&](int i) {
          return a.kept(begin + static_cast<uint64_t>(a.key_place[step * kStep + i / 2 * 8 + column + i % 2]));
        });
      }
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) GPU_UNROLL
      for (int i = 0; i < 2; ++i) {
        float p = s[n][half * 2 + i];
        if (kMore && bits >> (2 * n + i) & 1) p = -p;
        float& made = dp[n][half * 2 + i];
        made = dscore<kMore>(a, score, p, made, lse_delta[half][0], lse_delta[half][1]);
      }
    }
    uint32_t left[kN / 2][4];
    pack_left<T>(left, dp);
    add_values<kHead>(dq, left, step_k);
    step = next, buffer = 1 - buffer;
  }

  GPU_UNROLL
  for (int half = 0; half < 2; ++half) {
    const int r = first_row + half * 8;
    if (r >= a.rows) continue;
    T* const to = static_cast<T*>(a.dq) + a.row_of(a.dq_at, b, h, r);
    GPU_UNROLL
    for (int n = 0; n < kHead / 8; ++n)
      if (n * 8 < a.head_dim)
        put_two(to + n * 8 + column, dq[n][half * 2] * a.scale, dq[n][half * 2 + 1] * a.scale, a.add[0]);
  }
}

// Any type, head_dim and alignment, in fp32. A block makes kTile keys of dk and dv (kOfKeys) or rows of dq, with 256 /
// kTile lanes for each, and goes over the others, kTile at a time.
template <typename T, int kTile, bool kOfKeys>
__global__ __launch_bounds__(256, 2) void attention_grad_plainly(AttentionCall a) {
  constexpr int kThreads = 256, kLanes = kThreads / kTile, kEach = kTile / kLanes;
  GPU_DYNAMIC_SHARED(float, shared);
  const int wide = a.head_dim | 1, tile_size = kTile * wide;
  float *const q = shared, *const d_o = q + tile_size, *const k = d_o + tile_size, *const v = k + tile_size;
  float *const made = v + tile_size, *const made_dv = made + tile_size;                        // dq or dk, and dv
  float *const ds = made_dv + (kOfKeys ? tile_size : 0), *const p = ds + kTile * (kTile + 1);  // [own other]
  unsigned char* const seen = reinterpret_cast<unsigned char*>(p + kTile * (kTile + 1));
  const int count = kOfKeys ? a.keys : a.rows, others = kOfKeys ? a.rows : a.keys;
  const int tiles = (count + kTile - 1) / kTile;
  const int head = static_cast<int>(blockIdx.x) / tiles, first = static_cast<int>(blockIdx.x) % tiles * kTile;
  const int b = head / a.kv_heads, h = head % a.kv_heads;
  const int own = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;

  const auto copy_rows = [&](int begin) {
    copy_widened<T, kTile>(q, wide, a.head_dim, static_cast<const T*>(a.q),
                           [&](int i) { return begin + i < a.rows ? a.row_of(a.q_at, b, h, begin + i) : -1; });
    copy_widened<T, kTile>(d_o, wide, a.head_dim, static_cast<const T*>(a.d_o),
                           [&](int i) { return begin + i < a.rows ? a.row_of(a.do_at, b, h, begin + i) : -1; });
  };
  const auto copy_keys = [&](int begin) {
    copy_widened<T, kTile>(k, wide, a.head_dim, static_cast<const T*>(a.k), [&](int i) {
      return begin + i < a.keys ? b * a.k_at.batch + (begin + i) * a.k_at.key + h * a.k_at.kv_head : -1;
    });
    copy_widened<T, kTile>(v, wide, a.head_dim, static_cast<const T*>(a.v), [&](int i) {
      return begin + i < a.keys ? b * a.v_at.batch + (begin + i) * a.v_at.key + h * a.v_at.kv_head : -1;
    });
  };
  kOfKeys ? copy_keys(first) : copy_rows(first);
  for (int d = lane; d < a.head_dim; d += kLanes) {
    made[own * wide + d] = 0;
    if (kOfKeys) made_dv[own * wide + d] = 0;
  }
  const int all = a.heads[h] < 0 ? 0 : kOfKeys ? a.row_tiles : a.key_tiles, at = first / kSightTile;
  const TileRange range = list_tiles<kThreads>(all, seen, [&](int t) {
    return seen_by(a.row_tile[b * a.row_tiles + (kOfKeys ? t : at)], a.key_tile[b * a.key_tiles + (kOfKeys ? at : t)]);
  });

  for (int t = range.begin; t < range.end; t = next_step<1>(seen, t + 1, range.end))
    for (int begin = t * kSightTile; begin < std::min(others, (t + 1) * kSightTile); begin += kTile) {
      kOfKeys ? copy_rows(begin) : copy_keys(begin);
      __syncthreads();
      GPU_UNROLL
      for (int j = 0; j < kEach; ++j) {
        const int other = lane + j * kLanes, i_row = kOfKeys ? other : own, i_key = kOfKeys ? own : other;
        const int r = (kOfKeys ? begin : first) + i_row, key = (kOfKeys ? first : begin) + i_key;
        float s = 0, dp = 0;
        for (int d = 0; d < a.head_dim; ++d) {
          s += q[i_row * wide + d] * k[i_key * wide + d];
          dp += d_o[i_row * wide + d] * v[i_key * wide + d];
        }
        const AttentionRow row = a.row_info(b, r);
        const int place = a.key_place[key];
        float of_p = 0, of_ds = 0;
        if (visible(row, place, a.document_of_key(b, key))) {
          const Vec<float, 2> of_row = a.lse_delta[static_cast<int64_t>(head) * a.row_tiles * kSightTile + r];
          s = a.softcap > 0 ? a.softcap * tanhf(s * a.scale / a.softcap) : s * a.scale;
          const float slope = a.softcap > 0 ? 1 - s * s / (a.softcap * a.softcap) : 1;
          float m = 1;
          if (a.keep > 0) m = a.kept(a.random_begin(b, h, r, row.place) + static_cast<uint64_t>(place)) ? a.keep : 0;
          of_p = exp2f(s * kLog2E - of_row[0]);
          of_ds = of_p * (m * dp - of_row[1]) * slope * a.scale;
          of_p *= m;
        }
        ds[own * (kTile + 1) + other] = of_ds;
        p[own * (kTile + 1) + other] = of_p;
      }
      warp_barrier();
      for (int d = lane; d < a.head_dim; d += kLanes) {
        float more = 0, more_dv = 0;
        GPU_UNROLL
        for (int j = 0; j < kTile; ++j) {
          more += ds[own * (kTile + 1) + j] * (kOfKeys ? q : k)[j * wide + d];
          if (kOfKeys) more_dv += p[own * (kTile + 1) + j] * d_o[j * wide + d];
        }
        made[own * wide + d] += more;
        if (kOfKeys) made_dv[own * wide + d] += more_dv;
      }
      __syncthreads();
    }

  const int i = first + own;
  if (i >= count) return;
  for (int d = lane; d < a.head_dim; d += kLanes) {
    if (kOfKeys) {
      const int64_t dk = b * a.dk_at.batch + i * a.dk_at.key + h * a.dk_at.kv_head;
      const int64_t dv = b * a.dv_at.batch + i * a.dv_at.key + h * a.dv_at.kv_head;
      put(static_cast<T*>(a.dk) + dk + d, made[own * wide + d], a.add[1]);
      put(static_cast<T*>(a.dv) + dv + d, made_dv[own * wide + d], a.add[2]);
    } else {
      put(static_cast<T*>(a.dq) + a.row_of(a.dq_at, b, h, i) + d, made[own * wide + d], a.add[0]);
    }
  }
}

dim3 blocks_of(const AttentionCall& a, int count, int each) {
  return dim3(static_cast<unsigned>(a.batch * a.kv_heads * ((count + each - 1) / each)));
}

template <typename T, int kHead, int kWarps, int kStep, int kBlocks, int kMake, bool kMore>
void launch_keys(const KernelCall& call, const AttentionCall& a) {
  constexpr int kKeys = 16 * kWarps;
  const size_t shared =
      sizeof(T) * kHead * (2 * kKeys + 4 * kStep) + sizeof(float) * 4 * kStep + static_cast<size_t>(a.row_tiles);
  launch(*call.stream, blocks_of(a, a.keys, kKeys), dim3(32 * kWarps), shared,
         attention_grad_keys<T, kHead, kWarps, kStep, kBlocks, kMake, kMore>, a);
}
template <typename T, int kHead, int kWarps, int kStep, int kBlocks, bool kMayHold, bool kMore>
void launch_rows(const KernelCall& call, const AttentionCall& a) {
  constexpr int kRows = 16 * kWarps;
  const auto kernel = attention_grad_rows<T, kHead, kWarps, kStep, kBlocks, kMayHold, kMore>;
  const bool held = kMayHold && !by_four_warps(kernel);
  const int tile_rows = held ? std::max(2 * kRows, 4 * kStep) : 2 * kRows + 4 * kStep;
  const size_t shared = sizeof(T) * kHead * static_cast<size_t>(tile_rows) + static_cast<size_t>(a.key_tiles);
  launch(*call.stream, blocks_of(a, a.rows, kRows), dim3(32 * kWarps), shared, kernel, a);
}
template <typename T, bool kMore>
void grad_by_units(const KernelCall& call, const AttentionCall& a) {
  if (a.head_dim <= 64) {
    launch_keys<T, 64, 4, 64, 3, kMakeDk | kMakeDv, kMore>(call, a);
    launch_rows<T, 64, 4, 64, 3, true, kMore>(call, a);
  } else if (a.head_dim <= 128) {
    launch_keys<T, 128, 8, 64, 1, kMakeDk | kMakeDv, kMore>(call, a);
    launch_rows<T, 128, 4, 64, 2, true, kMore>(call, a);
  } else {  // dk and dv together need more registers than there are
    launch_keys<T, 256, 4, 32, 1, kMakeDk, kMore>(call, a);
    launch_keys<T, 256, 4, 32, 1, kMakeDv, kMore>(call, a);
    launch_rows<T, 256, 4, 32, 1, false, kMore>(call, a);
  }
}
template <typename T, int kTile>
void grad_plainly(const KernelCall& call, const AttentionCall& a) {
  const auto shared = [&](int tiles) {
    return sizeof(float) * kTile * static_cast<size_t>(tiles * (a.head_dim | 1) + 2 * (kTile + 1));
  };
  launch(*call.stream, blocks_of(a, a.keys, kTile), dim3(256), shared(6) + static_cast<size_t>(a.row_tiles),
         attention_grad_plainly<T, kTile, true>, a);
  launch(*call.stream, blocks_of(a, a.rows, kTile), dim3(256), shared(5) + static_cast<size_t>(a.key_tiles),
         attention_grad_plainly<T, kTile, false>, a);
}

// dq, dk and dv, side by side in the rows of `all`: [batch seq columns].
void place_in_columns(AttentionCall& a, const View& all) {
  const int64_t row = all.size("columns"), batch = all.size("seq") * row, head_dim = a.head_dim,
                keys = a.kv_heads * head_dim, queries = a.group * keys;
  base::require(row == queries + 2 * keys && a.seq == a.keys, "attention", "{} for {} and twice {} columns",
                to_string(all.shape()), queries, keys);
  std::byte* const at = all.data;
  const int64_t size = tensor::size_of(all.dtype());
  a.dq = at, a.dk = at + queries * size, a.dv = at + (queries + keys) * size;
  a.dq_at = {batch, row, a.group * head_dim, head_dim};
  a.dk_at = a.dv_at = {batch, row, head_dim};
}

// The calls that make a gradient, of some samples or some heads each.
std::vector<kernels::LibraryAttention> shares_of(const kernels::LibraryAttention& all) {
  const int64_t group = all.heads / all.kv_heads;
  const kernels::LibraryShare share =
      kernels::library_share(all.batch, all.kv_heads, kernels::library_scores(group, all.seq));
  std::vector<kernels::LibraryAttention> calls;
  for (int64_t b = 0; b < all.batch; b += share.batch)
    for (int64_t h = 0; h < all.kv_heads; h += share.kv_heads) {
      kernels::LibraryAttention& one = calls.emplace_back(all);
      one.batch = std::min(share.batch, all.batch - b), one.kv_heads = std::min(share.kv_heads, all.kv_heads - h);
      one.heads = one.kv_heads * group;
      const auto shift = [&](kernels::AttentionOperand& x, int64_t heads, int64_t size) {
        x.data = static_cast<const std::byte*>(x.data) + (b * x.at.batch + h * heads * x.at.head) * size;
      };
      for (auto x : {&one.q, &one.o, &one.d_o, &one.dq}) shift(*x, group, tensor::size_of(all.dtype));
      for (auto x : {&one.k, &one.v, &one.dk, &one.dv}) shift(*x, 1, tensor::size_of(all.dtype));
      shift(one.lse, group, sizeof(float));
      one.lse.at.batch = one.heads * all.seq;  // of one sample: cuDNN before 9.26 asks for lse without gaps
    }
  return calls;
}

// By a library; false, and nothing is done: it is for our own kernels.
bool grad_by_library(const KernelCall& call, const AttentionCall& a) {
  std::optional<kernels::LibraryAttention> asked = of_library(call, a, true);
  if (!asked) return false;
  const int64_t heads = asked->heads, count = a.batch * heads * a.seq;
  asked->workspace_bytes -= (count * 4 + 255) / 256 * 256;
  float* const lse = reinterpret_cast<float*>(call.workspace.data() + asked->workspace_bytes);
  asked->lse = {lse, {heads * a.seq, a.seq, 1}};
  const std::vector<kernels::LibraryAttention> calls = shares_of(*asked);
  device::NoStream nothing;
  for (const kernels::LibraryAttention& one : calls)
    if (!attention_by_library(one, nothing)) return false;
  launch_pieces(*call.stream, count, pack_lse, a, lse, count);
  for (const kernels::LibraryAttention& one : calls)
    base::require(attention_by_library(one, *call.stream), "attention", "a library does not do what it said");
  return true;
}

}  // namespace

int64_t attention_grad_workspace(const KernelShapes& shapes) {
  return attention_bytes(shapes, true);
}

void attention_grad(const KernelCall& call) {
  using In = kernels::AttentionGradIn;
  using Out = kernels::AttentionGradOut;
  AttentionCall a = attention_call(call, true);
  const View &o = call.ins[In::kO], &lse = call.ins[In::kLse], &d_o = call.ins[In::kDo], &dq = call.outs[Out::kDq],
             &dk = call.outs[Out::kDk], &dv = call.outs[Out::kDv], &dsinks = call.outs[Out::kDsinks],
             &dqkv = call.outs[Out::kDqkv];
  const DType dtype = call.ins[In::kQ].dtype();
  base::require(lse.dtype() == DType::f32, "attention", "lse is fp32 on a device, not {}", name_of(lse.dtype()));
  for (const View* x : {&o, &d_o, &dq, &dk, &dv, &dqkv})
    base::require(x->data == nullptr || x->dtype() == dtype, "attention", "{} of {} beside q of {}",
                  to_string(x->shape()), name_of(x->dtype()), name_of(dtype));
  a.o = o.data, a.o_at = row_strides(o), a.d_o = d_o.data, a.do_at = row_strides(d_o);
  a.lse = data<float>(lse), a.lse_at = row_strides(lse);
  a.dq = dq.data, a.dq_at = row_strides(dq);
  a.dk = dk.data, a.dk_at = key_strides(dk), a.dv = dv.data, a.dv_at = key_strides(dv);
  if (dqkv.data != nullptr) place_in_columns(a, dqkv);
  if (grad_by_library(call, a)) return;
  launch_sight(call, a);
  dispatch("attention", dtype, [&]<typename T>(T) {
    const dim3 blocks(static_cast<unsigned>(a.batch * a.kv_heads * a.row_tiles));
    if (!attention_is_wide(a)) {
      launch(*call.stream, blocks, dim3(256), 0, attention_delta<T, 1, 32>, a);
    } else if (a.head_dim <= 64) {
      launch(*call.stream, blocks, dim3(256), 0, attention_delta<T, kWide<T>, 8>, a);
    } else {
      launch(*call.stream, blocks, dim3(256), 0, attention_delta<T, kWide<T>, 16>, a);
    }
    if constexpr (sizeof(T) == 2) {
      if (attention_is_wide(a) && a.head_dim <= 256)
        return a.softcap > 0 || a.keep > 0 ? grad_by_units<T, true>(call, a) : grad_by_units<T, false>(call, a);
    }
    a.head_dim <= 128 ? grad_plainly<T, 32>(call, a) : grad_plainly<T, 16>(call, a);
  });
  if (dsinks.data)
    dispatch("attention", dsinks.dtype(), [&]<typename T>(T) {
      launch(*call.stream, dim3(static_cast<unsigned>(a.kv_heads * a.group)), dim3(256), 0, attention_grad_sinks<T>, a,
             data<T>(dsinks), a.add[3]);
    });
}

}  // namespace kintsugi::KINTSUGI_GPU
