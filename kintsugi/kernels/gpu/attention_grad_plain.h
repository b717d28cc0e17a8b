// The gradient of attention without tensor cores.
#pragma once

#include "kintsugi/kernels/gpu/attention_common.h"
#include "kintsugi/kernels/gpu/fast_math.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// Any type, head_dim and alignment, in fp32. A block computes kTile keys of dk and dv (kOfKeys) or kTile rows of dq,
// iterating over the others kTile at a time.
template <typename T, int kTile, bool kOfKeys>
__global__ __launch_bounds__(kPlainThreads<kTile>, 2) void attention_grad_plainly(AttentionCall a) {
  constexpr int kThreads = kPlainThreads<kTile>, kLanes = kThreads / kTile, kEach = kTile / kLanes;
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

// Returns false if blocks have too little shared memory.
template <typename T, int kTile>
bool grad_plainly(const KernelCall& call, const AttentionCall& a) {
  const auto shared = [&](int tiles, int list) {
    return sizeof(float) * kTile * static_cast<size_t>(tiles * (a.head_dim | 1) + 2 * (kTile + 1)) +
           static_cast<size_t>(list);
  };
  const size_t of_keys = shared(6, a.row_tiles), of_rows = shared(5, a.key_tiles);
  if (!has_shared(std::max(of_keys, of_rows))) return false;
  constexpr int kThreads = kPlainThreads<kTile>;
  launch(*call.stream, blocks_of(a, a.keys, kTile), dim3(kThreads), of_keys, attention_grad_plainly<T, kTile, true>, a);
  launch(*call.stream, blocks_of(a, a.rows, kTile), dim3(kThreads), of_rows, attention_grad_plainly<T, kTile, false>,
         a);
  return true;
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
