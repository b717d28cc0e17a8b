// The gradient of attention on tensor cores, in 16 bits: one kernel for keys and one for rows of queries.
#pragma once

#include "kintsugi/kernels/gpu/attention_tile.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Computes p from an unscaled score.
struct ScoreOf {
  float scale, softcap, to_log2;  // to_log2: factor of the scaled or capped score

  __device__ float capped(float dot) const { return softcap * fast_tanh(dot * scale / softcap); }
  // Derivative of capping, where p = 2^(log2(e) score - lse).
  __device__ float slope(float p, float lse) const {
    const float part = p > 0 ? (log2f(p) + lse) * kLn2 / softcap : 0;
    return 1 - part * part;
  }
};
__device__ inline ScoreOf score_of(const AttentionCall& a, bool more) {
  return {a.scale, a.softcap, more && a.softcap > 0 ? kLog2E : a.scale * kLog2E};
}
// Dropped elements of p are marked by a negative sign.
__device__ __forceinline__ float kept_part(const AttentionCall& a, float p) {
  return p > 0 ? p * a.keep : 0;
}
// dscore / scale, from p, do.v, and log2(e) lse and D of the row.
template <bool kMore>
__device__ __forceinline__ float dscore(const AttentionCall& a, const ScoreOf& score, float p, float dp, float lse,
                                        float delta) {
  if constexpr (!kMore) return p * (dp - delta);
  if (a.keep > 0) dp = p > 0 ? dp * a.keep : 0;
  p = fabsf(p);
  return p * (dp - delta) * (a.softcap > 0 ? score.slope(p, lse) : 1);
}

enum : int { kMakeDk = 1, kMakeDv = 2 };

// Queries per step: as many as registers allow; left operands also occupy registers unless tensor cores read them from
// shared memory.
constexpr int step_of_keys(int head, int most, bool by_four) {
  return head == 128 && !by_four ? std::min(32, most) : most;
}

// A block computes dk and dv of 16 kWarps keys of one head, 16 per warp; its scores are [keys queries]. kMore: with
// capped scores or dropout; kBlocks: resident blocks per multiprocessor if tensor cores read operands from shared
// memory.
template <typename T, int kHead, int kWarps, int kMostStep, int kBlocks, int kMake, bool kMore>
__global__ __launch_bounds__(32 * kWarps, KINTSUGI_FOUR_WARPS ? kBlocks : 1) void attention_grad_keys(AttentionCall a) {
  constexpr int kStep = step_of_keys(kHead, kMostStep, KINTSUGI_FOUR_WARPS);
  constexpr int kKeys = 16 * kWarps, kThreads = 32 * kWarps, kN = kStep / 8, kPer = kSightTile / kStep;
  constexpr int kKeyTiles = kKeys / kSightTile;
  GPU_DYNAMIC_SHARED(T, shared);
  T *const k = shared, *const v = k + kKeys * kHead, *const q = v + kKeys * kHead, *const d_o = q + 2 * kStep * kHead;
  auto* const rows =
      reinterpret_cast<Vec<float, 4>*>(d_o + 2 * kStep * kHead);  // lse and D of two adjacent rows: [2, kStep / 2]
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
  // Fragment of a lane: keys lane / 4 and that + 8 of the warp's 16, queries 2 (lane % 4) and the next one of each 8.
  // Recomputed where needed, to save registers.
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
  copy_async_wait<0>();  // in case no query sees a key

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

// A block computes dq of 16 kWarps rows of one head, 16 per warp. kMayHold: keep q and do in registers and reuse their
// tiles for keys, unless tensor cores read them from shared memory: with four-warp instructions, held rows of 64
// elements gave wrong sums on an H100, for an unknown reason.
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
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;  // start with the tiles that see the most keys
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
  // Fragment of a lane: rows lane / 4 and that + 8 of the warp's 16, columns 2 (lane % 4) and the next one of each 8.
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

// Configuration of the two kernels for heads of up to kHead, and bytes of shared memory without the tile lists;
// `by_four`: four-warp instructions.
template <int kHead, int kWarps, int kMostStep, int kBlocks>
struct KeysOf {
  static constexpr size_t bytes(bool by_four) {
    const int step = step_of_keys(kHead, kMostStep, by_four);
    return size_t{2} * kHead * (2 * 16 * kWarps + 4 * step) + sizeof(float) * 4 * step;
  }
  template <typename T, int kMake, bool kMore>
  static void start(const KernelCall& call, const AttentionCall& a, size_t shared) {
    launch(*call.stream, blocks_of(a, a.keys, 16 * kWarps), dim3(32 * kWarps), shared,
           attention_grad_keys<T, kHead, kWarps, kMostStep, kBlocks, kMake, kMore>, a);
  }
  // For wide heads, dk and dv together exceed the registers.
  template <typename T, bool kMore>
  static void start_all(const KernelCall& call, const AttentionCall& a, size_t shared) {
    if constexpr (kHead <= 128) {
      start<T, kMakeDk | kMakeDv, kMore>(call, a, shared);
    } else {
      start<T, kMakeDk, kMore>(call, a, shared);
      start<T, kMakeDv, kMore>(call, a, shared);
    }
  }
};
template <int kHead, int kWarps, int kStep, int kBlocks, bool kMayHold>
struct RowsOf {
  static constexpr size_t bytes(bool by_four) {
    const int own = 2 * 16 * kWarps, others = 4 * kStep;
    return size_t{2} * kHead * (kMayHold && !by_four ? std::max(own, others) : own + others);
  }
  template <typename T, bool kMore>
  static constexpr auto* kKernel = attention_grad_rows<T, kHead, kWarps, kStep, kBlocks, kMayHold, kMore>;
  template <typename T, bool kMore>
  static void start(const KernelCall& call, const AttentionCall& a, size_t shared) {
    launch(*call.stream, blocks_of(a, a.rows, 16 * kWarps), dim3(32 * kWarps), shared, kKernel<T, kMore>, a);
  }
};

// Returns false if blocks have too little shared memory.
template <typename T, bool kMore, typename Keys, typename Rows>
bool grad_by(const KernelCall& call, const AttentionCall& a) {
  if constexpr (std::max(Keys::bytes(false), Rows::bytes(false)) <= kMostShared) {
    const bool by_four = by_four_warps(Rows::template kKernel<T, kMore>);
    const size_t of_keys = Keys::bytes(by_four) + static_cast<size_t>(a.row_tiles),
                 of_rows = Rows::bytes(by_four) + static_cast<size_t>(a.key_tiles);
    if (!has_shared(std::max(of_keys, of_rows))) return false;
    Keys::template start_all<T, kMore>(call, a, of_keys);
    Rows::template start<T, kMore>(call, a, of_rows);
    return true;
  }
  return false;
}
template <typename T, bool kMore>
bool grad_by_units(const KernelCall& call, const AttentionCall& a) {
  if (a.head_dim <= 64) return grad_by<T, kMore, KeysOf<64, 4, 64, 3>, RowsOf<64, 4, 64, 3, true>>(call, a);
  if (a.head_dim > 128)
    return a.head_dim <= 256 && grad_by<T, kMore, KeysOf<256, 4, 32, 1>, RowsOf<256, 4, 32, 1, false>>(call, a);
  if (grad_by<T, kMore, KeysOf<128, 8, 64, 1>, RowsOf<128, 4, 64, 2, true>>(call, a)) return true;
  if constexpr (KeysOf<128, 8, 64, 1>::bytes(false) > kLeastShared)
    return grad_by<T, kMore, KeysOf<128, 4, 16, 1>, RowsOf<128, 4, 32, 2, true>>(call, a);
  return false;
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
