#include "kintsugi/kernels/cpu/attention_few.h"

#include <algorithm>
#include <atomic>

#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/attention_few.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/attention-inl.h"

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {

// The partial result of a block.
struct FewPart {
  float *values, *top, *sum;  // [queries head_dim, padded], [queries], [queries]

  FewPart(const AttentionSetting& s, float* at)
      : values(at), top(at + s.queries() * padded(s.head_dim)), sum(top + s.queries()) {}
};

constexpr int64_t kAhead = 16;  // keys to prefetch

// A row of a head.
template <typename T>
HWY_INLINE void fetch_row(const T* row, int64_t head_dim) {
  for (int64_t d = 0; d < head_dim; d += 64 / static_cast<int64_t>(sizeof(T))) fetch_second(row + d);
}

// The dot products of one query with `count` keys, `stride` elements apart. Also prefetches `values`, which are read
// next: rows of a head are too far apart for the hardware prefetcher.
template <typename T>
void dot_keys(const float* q, const T* keys, const T* values, int64_t stride, int64_t count, int64_t head_dim,
              float* scores) {
  const int64_t whole = head_dim / lanes() * lanes();
  for (int64_t i = 0; i < count; ++i) {
    const T* k = keys + i * stride;
    fetch_row(keys + std::min(i + kAhead, count - 1) * stride, head_dim);
    fetch_row(values + i * stride, head_dim);
    V sum = zero();
    for (int64_t d = 0; d < whole; d += lanes()) sum = hn::MulAdd(load(q + d), load(k + d), sum);
    if (whole < head_dim) sum = hn::MulAdd(load(q + whole), load_n(k + whole, head_dim - whole), sum);
    scores[i] = sum_of_lanes(sum);
  }
}

// sums = weighted sum of the values of `count` keys; kSome vectors of a head at a time, in as many accumulators.
template <int kSome, typename T>
int64_t add_values_from(int64_t d, const float* weights, const T* values, int64_t stride, int64_t count,
                        int64_t head_dim, float* sums) {
  for (; d + kSome * lanes() <= head_dim; d += kSome * lanes()) {
    V sum[kSome];
    for (int v = 0; v < kSome; ++v) sum[v] = zero();
    for (int64_t j = 0; j < count; ++j) {
      const V weight = set(weights[j]);
      for (int v = 0; v < kSome; ++v) sum[v] = hn::MulAdd(weight, load(values + j * stride + d + v * lanes()), sum[v]);
    }
    for (int v = 0; v < kSome; ++v) store(sum[v], sums + d + v * lanes());
  }
  return d;
}

template <typename T>
void add_values(const float* weights, const T* values, int64_t stride, int64_t count, int64_t head_dim, float* sums) {
  int64_t d = add_values_from<4>(0, weights, values, stride, count, head_dim, sums);
  d = add_values_from<1>(d, weights, values, stride, count, head_dim, sums);
  if (d == head_dim) return;
  V x = zero();
  for (int64_t j = 0; j < count; ++j) x = hn::MulAdd(set(weights[j]), load_n(values + j * stride + d, head_dim - d), x);
  store(x, sums + d);  // padded
}

// Sets scores that the query, row i of its tile, cannot see to minus infinity.
void hide(const AttentionSetting& s, const AttentionScratch& t, const QueryTile& q, int64_t i, base::Range keys,
          float* scores) {
  const float none = -std::numeric_limits<float>::infinity();
  const int32_t* places = s.key_place + keys.begin;
  const int32_t* starts = s.key_starts ? s.key_starts + q.batch * s.key_seq + keys.begin : nullptr;
  const auto start = hn::Set(DI(), t.start[i]), last = hn::Set(DI(), t.last[i]);
  const auto document = hn::Set(DI(), starts ? t.document[i] : 0);
  int64_t k = 0;
  for (; k + lanes() <= keys.size(); k += lanes()) {
    const auto place = hn::LoadU(DI(), places + k);
    auto hidden = hn::Or(hn::Lt(place, start), hn::Lt(last, place));
    if (starts) hidden = hn::Or(hidden, hn::Ne(hn::LoadU(DI(), starts + k), document));
    store(hn::IfThenElse(hn::RebindMask(D(), hidden), set(none), load(scores + k)), scores + k);
  }
  for (; k < keys.size(); ++k)
    if (places[k] < t.start[i] || places[k] > t.last[i] || (starts && starts[k] != t.document[i])) scores[k] = none;
}

// Exponentiates scores relative to their maximum.
void exponentials(int64_t count, float* scores, float* top, float* sum) {
  V tops = set(-1e30f);  // below every score, and finite
  int64_t i = 0;
  for (; i + lanes() <= count; i += lanes()) tops = hn::Max(tops, load(scores + i));
  float most = hn::GetLane(hn::MaxOfLanes(D(), tops));
  for (; i < count; ++i) most = std::max(most, scores[i]);
  V total = zero();
  for (i = 0; i + lanes() <= count; i += lanes()) {
    const V p = exp_of(hn::Sub(load(scores + i), set(most)));
    store(p, scores + i);
    total = hn::Add(total, p);
  }
  float all = sum_of_lanes(total);
  for (; i < count; ++i) all += scores[i] = std::exp(scores[i] - most);
  *top = most, *sum = all;
}

// One block of the keys of a head, for all queries.
template <typename T>
void few_block(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, const QueryTile& q,
               base::Range keys, FewPart part) {
  const auto in = [&](size_t i) { return reinterpret_cast<const T*>(call.ins[i].data); };
  const int64_t stride = s.kv_heads * s.head_dim, wide = padded(s.head_dim), count = keys.size();
  const T* k = in(AttentionIn::kK) + s.key_row(q.batch, keys.begin, q.head) * s.head_dim;
  const T* v = in(AttentionIn::kV) + s.key_row(q.batch, keys.begin, q.head) * s.head_dim;
  float *row = t.few, *scores = t.few + wide;
  for (int64_t i = 0; i < q.count; ++i) {
    std::fill_n(row, wide, 0.0f);
    map(Times{s.scale}, s.head_dim, row, in(AttentionIn::kQ) + s.row_of(q.batch, q.head, q.begin + i) * s.head_dim);
    dot_keys(row, k, v, stride, count, s.head_dim, scores);
    for (int64_t j = 0; s.softcap > 0 && j < count; ++j) scores[j] = s.softcap * std::tanh(scores[j] / s.softcap);
    hide(s, t, q, i, keys, scores);
    exponentials(count, scores, part.top + i, part.sum + i);
    add_values(scores, v, stride, count, s.head_dim, part.values + i * wide);
  }
}

// The keys of a block that any query may see.
base::Range seen_keys(const AttentionSetting& s, const QueryTile& q, int64_t block) {
  constexpr int64_t kTiles = kFewKeys / kTileKeys;
  int64_t begin = block * kTiles, end = std::min(begin + kTiles, s.num_key_tiles());
  while (begin < end && seen(s, q, begin) == Seen::none) ++begin;
  while (begin < end && seen(s, q, end - 1) == Seen::none) --end;
  return {begin * kTileKeys, std::min(end * kTileKeys, s.key_seq)};
}

void few_block_any(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, int64_t head,
                   int64_t block) {
  const QueryTile q = query_tile(s, t, head / s.kv_heads, head % s.kv_heads, 0);
  const base::Range keys = seen_keys(s, q, block);
  const FewPart part(s, s.few_parts + (head * few_blocks(s) + block) * few_part(s));
  if (keys.size() <= 0) return static_cast<void>(std::fill_n(part.sum, s.queries(), 0.0f));
  for_type(call.ins[AttentionIn::kQ].dtype(), [&]<typename T>(T) { few_block<T>(call, s, t, q, keys, part); });
}

// Combines the blocks of a head to o and lse.
template <typename T>
void join_blocks(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, int64_t head) {
  T* o = reinterpret_cast<T*>(call.outs[AttentionOut::kO].data);
  float* lse = reinterpret_cast<float*>(call.outs[AttentionOut::kLse].data);
  const int64_t b = head / s.kv_heads, of_sample = head % s.kv_heads, wide = padded(s.head_dim);
  float* values = t.few;
  query_tile(s, t, b, of_sample, 0);
  for (int64_t i = 0; i < s.queries(); ++i) {
    const auto part_of = [&](int64_t block) {
      return FewPart(s, s.few_parts + (head * few_blocks(s) + block) * few_part(s));
    };
    float top = -1e30f, sum = 0;
    for (int64_t block = 0; block < few_blocks(s); ++block)
      if (part_of(block).sum[i] != 0) top = std::max(top, part_of(block).top[i]);
    std::fill_n(values, wide, 0.0f);
    for (int64_t block = 0; block < few_blocks(s); ++block) {
      const FewPart part = part_of(block);
      if (part.sum[i] == 0) continue;
      const float factor = std::exp(part.top[i] - top);
      sum += part.sum[i] * factor;
      map(AddTimes{factor}, s.head_dim, values, part.values + i * wide, values);
    }
    t.top[i] = top, t.sum[i] = sum;
    const RowEnd end = end_of_row(s, t, of_sample, 0, i);
    const int64_t row = s.row_of(b, of_sample, i);
    lse[row] = end.lse;
    if (end.factor == 0) {
      std::fill_n(o + row * s.head_dim, s.head_dim, T());
    } else {
      map(Times{end.factor}, s.head_dim, o + row * s.head_dim, values);
    }
  }
}

void join_blocks_any(const KernelCall& call, const AttentionSetting& s, const AttentionScratch& t, int64_t head) {
  for_type(call.ins[AttentionIn::kQ].dtype(), [&]<typename T>(T) { join_blocks<T>(call, s, t, head); });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(few_block_any);
HWY_EXPORT(join_blocks_any);

bool is_few(const AttentionSetting& s) {
  return s.queries() <= kFewQueries && s.dropout == 0;
}

void attend_few(const KernelCall& call, const AttentionSetting& s) {
  const auto block = HWY_DYNAMIC_DISPATCH(few_block_any);
  const auto join = HWY_DYNAMIC_DISPATCH(join_blocks_any);
  const int64_t blocks = few_blocks(s);
  std::atomic<int64_t> next{0};
  call.team.run([&](int thread) {
    for (int64_t i = next++; i < s.heads() * blocks; i = next++)
      block(call, s, s.threads[thread], i / blocks, i % blocks);
  });
  call.team.for_shares(s.heads(), 1, [&](base::Range r, int thread) {
    for (int64_t head = r.begin; head < r.end; ++head) join(call, s, s.threads[thread], head);
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
