// Tiled attention with online softmax: Dao 2023, "FlashAttention-2", section 3.1.
#include "kintsugi/kernels/gpu/attention_tile.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// A block computes 16 kWarps rows of one head, 16 per warp, over kKeys keys at a time. kMore: with capped scores or
// dropout; kBlocks: resident blocks per multiprocessor if tensor cores read operands from shared memory.
template <typename T, int kHead, int kWarps, int kKeys, int kBlocks, bool kMore>
__global__ __launch_bounds__(32 * kWarps, KINTSUGI_FOUR_WARPS ? kBlocks : 1) void attention_by_units(AttentionCall a) {
  constexpr int kRows = 16 * kWarps, kThreads = 32 * kWarps, kN = kKeys / 8, kPer = kSightTile / kKeys;
  constexpr int kRowTiles = kRows / kSightTile;
  GPU_DYNAMIC_SHARED(T, shared);
  T *const q = shared, *const k = q + kRows * kHead, *const v = k + 2 * kKeys * kHead;
  unsigned char* const seen = reinterpret_cast<unsigned char*>(v + 2 * kKeys * kHead);
  const int tiles = (a.rows + kRows - 1) / kRows, lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32, head = static_cast<int>(blockIdx.x) / tiles;
  const int b = head / a.kv_heads, h = head % a.kv_heads;
  const int tile = tiles - 1 - static_cast<int>(blockIdx.x) % tiles;  // start with the tiles that see the most keys

  const auto* const keys = static_cast<const T*>(a.k) + b * a.k_at.batch + h * a.k_at.kv_head;
  const auto* const values = static_cast<const T*>(a.v) + b * a.v_at.batch + h * a.v_at.kv_head;
  const auto copy = [&](int step, int buffer) {
    copy_tile<kHead, kKeys, kThreads>(k + buffer * kKeys * kHead, a.head_dim, [&](int i) {
      return keys + std::min(step * kKeys + i, a.keys - 1) * a.k_at.key;
    });
    copy_tile<kHead, kKeys, kThreads>(v + buffer * kKeys * kHead, a.head_dim, [&](int i) {
      return values + std::min(step * kKeys + i, a.keys - 1) * a.v_at.key;
    });
    copy_async_commit();
  };
  copy_tile<kHead, kRows, kThreads>(q, a.head_dim, [&](int i) {
    return static_cast<const T*>(a.q) + a.row_of(a.q_at, b, h, std::min(tile * kRows + i, a.rows - 1));
  });
  copy_async_commit();
  clear_columns<kHead, kRows, kThreads>(q, a.head_dim);
  for (int i = 0; i < 4; ++i) clear_columns<kHead, kKeys, kThreads>(k + i * kKeys * kHead, a.head_dim);

  const AttentionRows rows =
      unite(a.row_tile + b * a.row_tiles + tile * kRowTiles, std::min(kRowTiles, a.row_tiles - tile * kRowTiles));
  const TileRange range = list_tiles<kThreads>(a.heads[h] < 0 ? 0 : a.key_tiles, seen,
                                               [&](int t) { return seen_by(rows, a.key_tile[b * a.key_tiles + t]); });
  // Fragment of a lane: rows lane / 4 and that + 8 of the warp's 16, columns 2 (lane % 4) and the next one of each 8.
  const int first_row = tile * kRows + warp * 16 + lane / 4, column = lane % 4 * 2;
  const float unit = a.scale * kLog2E;  // scale of the base-2 exponent
  const bool capped = kMore && a.softcap > 0;
  const float to_log2 = capped ? kLog2E : unit;

  float o[kHead / 8][4] = {}, top[2] = {-INFINITY, -INFINITY}, sum[2] = {};
  const int end = range.end * kPer;
  int step = range.begin * kPer, buffer = 0;
  if (step < end) copy(step, 0);
  while (step < end) {
    wait_for_tiles();
    __syncthreads();
    const int next = next_step<kPer>(seen, step + 1, end);
    if (next < end) copy(next, 1 - buffer);

    float s[kN][4] = {};
    add_scores<kHead, kRows>(s, q, k + buffer * kKeys * kHead);
    if (capped) {
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) GPU_UNROLL
      for (int i = 0; i < 4; ++i) s[n][i] = a.softcap * fast_tanh(s[n][i] * a.scale / a.softcap);
    }
    if (seen[step / kPer] != kSeenAll) {
      GPU_UNROLL
      for (int half = 0; half < 2; ++half) hide(a, b, first_row + half * 8, step, column, s, half);
    }

    GPU_UNROLL
    for (int half = 0; half < 2; ++half) {
      float high = top[half];
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) high = fmaxf(high, fmaxf(s[n][half * 2], s[n][half * 2 + 1]));
      high = fmaxf(high, shuffle_xor(high, 1));
      high = fmaxf(high, shuffle_xor(high, 2));
      const float zero = high == -INFINITY ? 0 : high * to_log2;  // no key seen yet
      const float shrink = fast_exp2(top[half] * to_log2 - zero);
      top[half] = high;
      float more = 0;
      GPU_UNROLL
      for (int n = 0; n < kN; ++n) GPU_UNROLL
      for (int i = 0; i < 2; ++i) {
        float& p = s[n][half * 2 + i];
        p = fast_exp2(p * to_log2 - zero);
        more += p;
      }
      sum[half] = sum[half] * shrink + more;
      GPU_UNROLL
      for (int n = 0; n < kHead / 8; ++n) o[n][half * 2] *= shrink, o[n][half * 2 + 1] *= shrink;
    }
    if (kMore && a.keep > 0) {
      GPU_UNROLL
      for (int half = 0; half < 2; ++half) {
        const int r = std::min(first_row + half * 8, a.rows - 1);
        const uint64_t begin = a.random_begin(b, h, r, a.row_info(b, r).place);
        const uint32_t kept = bits_of<2 * kN>([&](int i) {
          return a.kept(begin + static_cast<uint64_t>(a.key_place[step * kKeys + i / 2 * 8 + column + i % 2]));
        });
        GPU_UNROLL
        for (int i = 0; i < 2 * kN; ++i) s[i / 2][half * 2 + i % 2] *= kept >> i & 1 ? a.keep : 0;
      }
    }
    uint32_t p[kN / 2][4];
    pack_left<T>(p, s);
    add_values<kHead>(o, p, v + buffer * kKeys * kHead);
    step = next, buffer = 1 - buffer;
  }
  copy_async_wait<0>();  // in case no key is seen

  GPU_UNROLL
  for (int half = 0; half < 2; ++half) {
    float all = sum[half];
    all += shuffle_xor(all, 1);
    all += shuffle_xor(all, 2);
    const int r = first_row + half * 8;
    if (r >= a.rows) continue;
    const float natural = capped ? 1 : a.scale;
    const RowEnd end = end_row(a, top[half] * natural, all, a.row_info(b, r), h, r % a.group);
    if (lane % 4 == 0) put(a.lse + a.row_of(a.lse_at, b, h, r), end.lse, a.add[1]);
    T* const to = static_cast<T*>(a.out) + a.row_of(a.o_at, b, h, r);
    GPU_UNROLL
    for (int n = 0; n < kHead / 8; ++n)
      if (n * 8 < a.head_dim)
        put_two(to + n * 8 + column, o[n][half * 2] * end.factor, o[n][half * 2 + 1] * end.factor, a.add[0]);
  }
}

// Any type, head_dim and alignment, in fp32: a block computes kTile rows, with kPlainThreads / kTile lanes per row.
template <typename T, int kTile>
__global__ __launch_bounds__(kPlainThreads<kTile>) void attention_plainly(AttentionCall a) {
  constexpr int kThreads = kPlainThreads<kTile>, kLanes = kThreads / kTile, kEach = kTile / kLanes;
  GPU_DYNAMIC_SHARED(float, shared);
  const int wide = a.head_dim | 1;
  float *const q = shared, *const k = q + kTile * wide, *const v = k + kTile * wide, *const o = v + kTile * wide;
  float* const p = o + kTile * wide;  // [kTile, kTile + 1]
  unsigned char* const seen = reinterpret_cast<unsigned char*>(p + kTile * (kTile + 1));
  const int tiles = (a.rows + kTile - 1) / kTile;
  const int head = static_cast<int>(blockIdx.x) / tiles, tile = static_cast<int>(blockIdx.x) % tiles;
  const int b = head / a.kv_heads, h = head % a.kv_heads;
  const int own = static_cast<int>(threadIdx.x) / kLanes, lane = static_cast<int>(threadIdx.x) % kLanes;
  const int r = tile * kTile + own;
  copy_widened<T, kTile>(q, wide, a.head_dim, static_cast<const T*>(a.q), [&](int i) {
    return tile * kTile + i < a.rows ? a.row_of(a.q_at, b, h, tile * kTile + i) : -1;
  });
  for (int d = lane; d < a.head_dim; d += kLanes) o[own * wide + d] = 0;
  const AttentionRow row = a.row_info(b, r);
  const AttentionRows rows = a.row_tile[b * a.row_tiles + tile * kTile / kSightTile];
  const TileRange range = list_tiles<kThreads>(a.heads[h] < 0 ? 0 : a.key_tiles, seen,
                                               [&](int t) { return seen_by(rows, a.key_tile[b * a.key_tiles + t]); });
  const uint64_t random = a.keep > 0 && row.place >= 0 ? a.random_begin(b, h, r, row.place) : 0;

  float top = -INFINITY, sum = 0;
  for (int t = range.begin; t < range.end; t = next_step<1>(seen, t + 1, range.end))
    for (int begin = t * kSightTile; begin < std::min(a.keys, (t + 1) * kSightTile); begin += kTile) {
      const auto at = [&](const KeyStrides& strides) {
        return [&, strides](int i) {
          return begin + i < a.keys ? b * strides.batch + (begin + i) * strides.key + h * strides.kv_head : -1;
        };
      };
      copy_widened<T, kTile>(k, wide, a.head_dim, static_cast<const T*>(a.k), at(a.k_at));
      copy_widened<T, kTile>(v, wide, a.head_dim, static_cast<const T*>(a.v), at(a.v_at));
      __syncthreads();
      float s[kEach] = {};
      for (int d = 0; d < a.head_dim; ++d) GPU_UNROLL
      for (int j = 0; j < kEach; ++j) s[j] += q[own * wide + d] * k[(lane + j * kLanes) * wide + d];
      float high = top;
      GPU_UNROLL
      for (int j = 0; j < kEach; ++j) {
        const int key = begin + lane + j * kLanes;
        s[j] = a.softcap > 0 ? a.softcap * tanhf(s[j] * a.scale / a.softcap) : s[j] * a.scale;
        if (!visible(row, a.key_place[key], a.document_of_key(b, key))) s[j] = -INFINITY;
        high = fmaxf(high, s[j]);
      }
      for (int mask = 1; mask < kLanes; mask *= 2) high = fmaxf(high, shuffle_xor(high, mask));
      const float zero = high == -INFINITY ? 0 : high, shrink = expf(top - zero);
      top = high;
      float more = 0;
      GPU_UNROLL
      for (int j = 0; j < kEach; ++j) {
        s[j] = expf(s[j] - zero);
        more += s[j];
        const int key = begin + lane + j * kLanes;
        if (a.keep > 0) s[j] *= s[j] > 0 && a.kept(random + static_cast<uint64_t>(a.key_place[key])) ? a.keep : 0;
        p[own * (kTile + 1) + lane + j * kLanes] = s[j];
      }
      sum = sum * shrink + more;
      warp_barrier();
      for (int d = lane; d < a.head_dim; d += kLanes) {
        float made = 0;
        GPU_UNROLL
        for (int j = 0; j < kTile; ++j) made += p[own * (kTile + 1) + j] * v[j * wide + d];
        o[own * wide + d] = o[own * wide + d] * shrink + made;
      }
      __syncthreads();
    }

  for (int mask = 1; mask < kLanes; mask *= 2) sum += shuffle_xor(sum, mask);
  if (r >= a.rows) return;
  const RowEnd end = end_row(a, top, sum, row, h, r % a.group);
  if (lane == 0) put(a.lse + a.row_of(a.lse_at, b, h, r), end.lse, a.add[1]);
  T* const to = static_cast<T*>(a.out) + a.row_of(a.o_at, b, h, r);
  for (int d = lane; d < a.head_dim; d += kLanes) put(to + d, o[own * wide + d] * end.factor, a.add[0]);
}

// Bytes of shared memory, without the tile list.
constexpr size_t units_bytes(int head, int warps, int keys) {
  return size_t{2} * head * (16 * warps + 4 * keys);
}

template <typename T, int kHead, int kWarps, int kKeys, int kBlocks>
void launch_units(const KernelCall& call, const AttentionCall& a, size_t shared) {
  const dim3 blocks = blocks_of(a, a.rows, 16 * kWarps);
  if (a.softcap > 0 || a.keep > 0) {
    launch(*call.stream, blocks, dim3(32 * kWarps), shared, attention_by_units<T, kHead, kWarps, kKeys, kBlocks, true>,
           a);
  } else {
    launch(*call.stream, blocks, dim3(32 * kWarps), shared, attention_by_units<T, kHead, kWarps, kKeys, kBlocks, false>,
           a);
  }
}

// Returns false if blocks have too little shared memory.
template <typename T, int kHead, int kWarps, int kKeys, int kBlocks>
bool by_units(const KernelCall& call, const AttentionCall& a) {
  constexpr size_t kBytes = units_bytes(kHead, kWarps, kKeys);
  if constexpr (kBytes <= kMostShared) {
    const size_t shared = kBytes + static_cast<size_t>(a.key_tiles);
    if (!has_shared(shared)) return false;
    launch_units<T, kHead, kWarps, kKeys, kBlocks>(call, a, shared);
    return true;
  }
  return false;
}
template <typename T>
bool by_units(const KernelCall& call, const AttentionCall& a) {
  if (!attention_is_wide(a)) return false;
  if (a.head_dim <= 64) return by_units<T, 64, 4, 64, 4>(call, a);
  if (a.head_dim > 128) return a.head_dim <= 256 && by_units<T, 256, 4, 32, 1>(call, a);
  if (by_units<T, 128, 4, 64, 2>(call, a)) return true;
  if constexpr (units_bytes(128, 4, 64) > kLeastShared) return by_units<T, 128, 4, 32, 2>(call, a);
  return false;
}

template <typename T, int kTile>
bool plainly(const KernelCall& call, const AttentionCall& a) {
  const size_t shared =
      sizeof(float) * kTile * static_cast<size_t>(4 * (a.head_dim | 1) + kTile + 1) + static_cast<size_t>(a.key_tiles);
  if (!has_shared(shared)) return false;
  launch(*call.stream, blocks_of(a, a.rows, kTile), dim3(kPlainThreads<kTile>), shared, attention_plainly<T, kTile>, a);
  return true;
}

template <typename T>
bool plainly(const KernelCall& call, const AttentionCall& a) {
  if ((a.head_dim <= 128 && plainly<T, 32>(call, a)) || plainly<T, 16>(call, a)) return true;
  if constexpr (kLeastShared <= 64 * 1024) return plainly<T, 8>(call, a);
  return false;
}

}  // namespace

#if defined(__CUDACC__)
kernels::AttentionByLibrary attention_by_library = kernels::cudnn_attention;
#else
kernels::AttentionByLibrary attention_by_library = nullptr;
#endif

int64_t attention_workspace(const KernelShapes& shapes) {
  return attention_bytes(shapes, false);
}

void attention(const KernelCall& call) {
  const AttentionCall a = forward_call(call);
  const View& o = call.outs[kernels::AttentionOut::kO];
  if (attention_of_few(call, a)) return;
  if (const auto asked = of_library(call, a, false); asked && attention_by_library(*asked, *call.stream)) return;
  launch_sight(call, a);
  dispatch("attention", o.dtype(), [&]<typename T>(T) {
    if constexpr (sizeof(T) == 2) {
      if (by_units<T>(call, a)) return;
    }
    if (!plainly<T>(call, a)) refuse_head(a);
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
