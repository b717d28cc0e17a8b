// The gradient of attention from its log-sum-exp (Dao 2023, "FlashAttention-2", algorithm 2). Each thread takes a block
// of keys of a head; the blocks' contributions to dq are summed in order, so that no sum depends on the number of
// threads.
#include <atomic>
#include <cmath>

#include "kintsugi/kernels/cpu/attention_bf16.h"
#include "kintsugi/kernels/cpu/attention_setting.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/attention_grad.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// Computes probabilities (with dropout) and score gradients from scores and do.v of a tile. t.top is the log-sum-exp,
// t.sum the sum of do * o. Scores are already capped, if at all, and determine the slope of the cap.
template <bool kCapped>
void grad_tile(const AttentionSetting& s, const AttentionScratch& t, int64_t queries, int64_t begin, int64_t keys,
               bool masked) {
  const V scale = set(s.scale);
  for (int64_t j = 0; j < queries; j += lanes()) {
    const Sight sight(s, t, j);
    Kept kept(s, t, j);
    const V lse = load(t.top + j), delta = load(t.sum + j);
    for (int64_t i = 0; i < keys; ++i) {
      float *score = t.score_t + i * kTileQueries + j, *dscore = t.dscore_t + i * kTileQueries + j;
      V x = load(score), dp = load(dscore);
      [[maybe_unused]] V slope;
      if constexpr (kCapped) {
        const V part = hn::Mul(x, set(1.0f / s.softcap));
        slope = hn::Max(hn::NegMulAdd(part, part, set(1.0f)), zero());  // a masked score is minus infinity
      }
      if (masked) x = sight(s.key_place[begin + i], x);
      const V p = exp_of(hn::Sub(x, lse));
      V dropped = p;
      if (s.dropout > 0) {
        const V factor = kept(s.key_place[begin + i]);
        dropped = hn::Mul(p, factor);
        dp = hn::Mul(dp, factor);
      }
      store(dropped, score);
      V d = hn::Mul(hn::Mul(p, hn::Sub(dp, delta)), scale);
      if constexpr (kCapped) d = hn::Mul(d, slope);
      store(d, dscore);
    }
  }
}

// A tile of dq, [queries head_dim, padded].
template <typename T>
void store_dq(const KernelCall& call, const AttentionSetting& s, int64_t b, int64_t head, int64_t tile,
              const float* sum) {
  T* dq = reinterpret_cast<T*>(call.outs[AttentionGradOut::kDq].data);
  const int64_t begin = tile * kTileQueries, end = std::min(begin + kTileQueries, s.queries());
  for (int64_t i = begin; i < end; ++i)
    map(Copy(), s.head_dim, dq + s.row_of(b, head, i) * s.head_dim, sum + (i - begin) * padded(s.head_dim));
}

// `parts`: the block's part of dq for each tile [queries head_dim, padded]; null: write to dq.
template <typename T>
void attend_back(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, int64_t b, int64_t head,
                 int64_t block, float* parts) {
  using In = AttentionGradIn;
  using Out = AttentionGradOut;
  const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data); };
  const auto out = [&](size_t i) { return reinterpret_cast<T*>(call.outs[i].data); };
  const T *q_in = in(In::kQ), *k = in(In::kK), *v = in(In::kV), *d_o = in(In::kDo);
  const int64_t wide = padded(s.head_dim), columns = whole_vectors(s.head_dim);
  const base::Range block_keys = keys_of_block(s, block), key_tiles = tiles_of_block(s, block);
  std::fill_n(t.dk, block_keys.size() * wide, 0.0f);
  std::fill_n(t.dv, block_keys.size() * wide, 0.0f);
  for (int64_t tile = 0; tile < s.query_tiles(); ++tile) {
    const QueryTile q = query_tile(s, t, b, head, tile);
    const int64_t queries = whole_vectors(q.count);
    float* dq = parts ? parts + tile * kTileQueries * wide : t.grad;
    std::fill_n(dq, q.count * wide, 0.0f);
    if (sees_none(s, q, key_tiles)) {
      if (!parts) store_dq<T>(call, s, b, head, tile, dq);
      continue;
    }
    load_queries(s, q, q_in, s.scale, t.q_t, t.rows);
    load_queries(s, q, d_o, 1.0f, t.do_t, t.drows);
    load_row_ends<T>(call, s, t, q);
    for (int64_t kt = key_tiles.begin; kt < key_tiles.end; ++kt) {
      const Seen sees = seen(s, q, kt);
      if (sees == Seen::none) continue;
      const int64_t begin = kt * kTileKeys, keys = std::min(kTileKeys, s.key_seq - begin),
                    at = (begin - block_keys.begin) * wide;
      const Tile key_rows = load_keys(s, q, begin, keys, k, true, t.keys);
      const Tile values = load_keys(s, q, begin, keys, v, false, t.values);
      multiply_tile(keys, queries, s.head_dim, key_rows, t.q_t, kTileQueries, t.score_t, kTileQueries, false);
      multiply_tile(keys, queries, s.head_dim, values, t.do_t, kTileQueries, t.dscore_t, kTileQueries, false);
      if (s.softcap > 0) cap_scores(s, t, queries, keys, 1.0f);
      if (s.key_starts && sees == Seen::some) hide_other_documents(s, t, q, queries, begin, keys);
      const auto grad = s.softcap > 0 ? grad_tile<true> : grad_tile<false>;
      grad(s, t, queries, begin, keys, sees == Seen::some);
      multiply_tile(keys, columns, q.count, {t.score_t, kTileQueries, 1}, t.drows, wide, t.dv + at, wide, true);
      multiply_tile(keys, columns, q.count, {t.dscore_t, kTileQueries, 1}, t.rows, wide, t.dk + at, wide, true);
      multiply_tile(q.count, columns, keys, {t.dscore_t, 1, kTileQueries}, key_rows.data, key_rows.row, dq, wide, true);
    }
    if (!parts) store_dq<T>(call, s, b, head, tile, dq);
  }
  store_keys(s, b, head, block_keys, t.dk, out(Out::kDk));
  store_keys(s, b, head, block_keys, t.dv, out(Out::kDv));
}

// For the sinks of one key head, whose probabilities are those of a key with value 0.
template <typename T>
void sinks_back(const KernelCall& call, const AttentionSetting& s, int64_t head) {
  using In = AttentionGradIn;
  const T *o = reinterpret_cast<const T*>(call.ins[In::kO].data),
          *d_o = reinterpret_cast<const T*>(call.ins[In::kDo].data);
  const float* lse = reinterpret_cast<const float*>(call.ins[In::kLse].data);
  const tensor::View& out = call.outs[AttentionGradOut::kDsinks];
  for (int64_t g = 0; g < s.group; ++g) {
    const int64_t at = head * s.group + g;
    double sum = 0;
    for (int64_t b = 0; s.sinks && b < s.batch; ++b)
      for (int64_t i = g; i < s.queries(); i += s.group) {
        const int64_t row = s.row_of(b, head, i);
        if (lse[row] == -std::numeric_limits<float>::infinity()) continue;
        sum -= std::exp(s.sinks[at] - lse[row]) * row_dot(d_o + row * s.head_dim, o + row * s.head_dim, s.head_dim);
      }
    for_type(out.dtype(), [&]<typename G>(G) {
      G& to = reinterpret_cast<G*>(out.data)[at];
      const auto before = call.accumulates(AttentionGradOut::kDsinks) ? static_cast<float>(to) : 0.0f;
      to = static_cast<G>(before + static_cast<float>(sum));
    });
  }
}

void sinks_back_any(const KernelCall& call, const AttentionSetting& s, int64_t head) {
  for_type(call.ins[AttentionGradIn::kQ].dtype(), [&]<typename T>(T) { sinks_back<T>(call, s, head); });
}

void attend_back_any(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head,
                     int64_t block, float* parts) {
  switch (call.ins[AttentionGradIn::kQ].dtype()) {
    case tensor::DType::bf16:
      return attend_back_bf16(call, s, t, head, block, parts);
    case tensor::DType::f16:
      return attend_back<tensor::f16>(call, s, t, head / s.kv_heads, head % s.kv_heads, block, parts);
    default:
      return attend_back<float>(call, s, t, head / s.kv_heads, head % s.kv_heads, block, parts);
  }
}

// Sums the parts of a tile of dq, `stride` floats apart, in the order of blocks.
void add_parts(const KernelCall& call, const AttentionSetting& s, AttentionScratch& t, int64_t head, int64_t tile,
               const float* parts, int64_t stride) {
  const int64_t n = kTileQueries * padded(s.head_dim);
  for (int64_t i = 0; i < n; i += lanes()) {
    V sum = load(parts + i);
    for (int64_t block = 1; block < s.key_blocks(); ++block) sum = hn::Add(sum, load(parts + block * stride + i));
    store(sum, t.grad + i);
  }
  switch (call.ins[AttentionGradIn::kQ].dtype()) {
    case tensor::DType::bf16:
      return store_dq_bf16(call, s, t, head, tile, t.grad);
    case tensor::DType::f16:
      return store_dq<tensor::f16>(call, s, head / s.kv_heads, head % s.kv_heads, tile, t.grad);
    default:
      return store_dq<float>(call, s, head / s.kv_heads, head % s.kv_heads, tile, t.grad);
  }
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(attend_back_any);
HWY_EXPORT(sinks_back_any);
HWY_EXPORT(add_parts);

namespace {

// Some heads at a time: their blocks, which are independent, then the sums of their contributions to dq.
void attend_back_in_parts(const KernelCall& call, const AttentionSetting& s) {
  const auto attend_back = HWY_DYNAMIC_DISPATCH(attend_back_any);
  const auto add = HWY_DYNAMIC_DISPATCH(add_parts);
  const int64_t tiles = s.query_tiles(), blocks = s.key_blocks(), of_block = tiles * kTileQueries * padded(s.head_dim);
  for (int64_t first = 0; first < s.heads(); first += s.heads_at_once) {
    const int64_t heads = std::min(s.heads_at_once, s.heads() - first);
    std::atomic<int64_t> next{0};
    call.team.run([&](int thread) {
      for (int64_t i = next++; i < heads * blocks; i = next++)
        attend_back(call, s, s.threads[thread], first + i / blocks, i % blocks, s.dq_parts + i * of_block);
    });
    call.team.for_shares(heads * tiles, 1, [&](base::Range r, int thread) {
      for (int64_t i = r.begin; i < r.end; ++i) {
        const int64_t head = i / tiles, tile = i % tiles;
        add(call, s, s.threads[thread], first + head, tile,
            s.dq_parts + head * blocks * of_block + tile * kTileQueries * padded(s.head_dim), of_block);
      }
    });
  }
}

void attend_back_whole(const KernelCall& call, const AttentionSetting& s) {
  const auto attend_back = HWY_DYNAMIC_DISPATCH(attend_back_any);
  std::atomic<int64_t> next{0};
  call.team.run([&](int thread) {
    for (int64_t head = next++; head < s.heads(); head = next++)
      attend_back(call, s, s.threads[thread], head, 0, nullptr);
  });
}

}  // namespace

int64_t attention_grad_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_attention({Types(shapes.ins), Types(shapes.outs), shapes.attributes}, true, shapes.threads, scratch);
  return scratch.bytes();
}

void attention_grad(const KernelCall& call) {
  const AttentionSetting s = attention_setting(call, true);
  s.key_blocks() > 1 ? attend_back_in_parts(call, s) : attend_back_whole(call, s);
  if (!call.outs[AttentionGradOut::kDsinks].data) return;
  const auto sinks_back = HWY_DYNAMIC_DISPATCH(sinks_back_any);
  call.team.for_shares(s.kv_heads, 1, [&](base::Range r, int) {
    for (int64_t head = r.begin; head < r.end; ++head) sinks_back(call, s, head);
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
