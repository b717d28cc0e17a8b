// Shared by attention and its gradient on devices: operands, visibility of keys to queries, dropout, and selection of
// the tiles to visit. q, o: [batch seq kv_heads group head_dim], k, v: [batch key_seq kv_heads head_dim], in any order
// of dims that ends with head_dim; lse: [batch seq kv_heads group]. The queries of one kv head are its rows: row s *
// group + g.
#pragma once

#include <climits>
#include <optional>

#include "kintsugi/kernels/gpu/attention_library.h"
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

// Number of rows, and of keys, per entry of the tables below.
constexpr int kSightTile = 64;

// The keys visible to a row: those from `first` to `last` by global index, in its own document. `place`: its own global
// index, -1 at padding.
struct alignas(16) AttentionRow {
  int first, last, document, place;
};
struct alignas(32) AttentionRows {  // bounds over a tile of rows
  int first_low, first_high, last_low, last_high, document_low, document_high;
};
// The same for a tile of keys. `pads`: it contains padding; `run`: it is keys low, low + 1, ..., high of one document,
// followed by padding.
struct alignas(32) AttentionKeys {
  int low, high, document_low, document_high, pads, run;
};

struct RowStrides {
  int64_t batch, seq, kv_head, group;
};
struct KeyStrides {
  int64_t batch, key, kv_head;
};

// Arguments shared by all kernels of a call.
struct AttentionCall {
  const void *q, *k, *v, *o, *d_o;
  void *out, *dq, *dk, *dv;  // `out`: the forward kernel's o
  float* lse;
  const int32_t *starts, *key_starts;  // null: none
  const void* sinks;                   // null: none, or this rank does not have the first key
  DType sinks_dtype;
  RowStrides q_at, o_at, do_at, dq_at, lse_at, starts_at;
  KeyStrides k_at, v_at, dk_at, dv_at, key_starts_at;
  int batch, seq, keys, kv_heads, group, head_dim;
  int rows, row_tiles, key_tiles;  // of one head; tiles of kSightTile
  bool causal, moved, add[4];      // moved: queries begin at later->position; add: accumulate into each output
  int window;                      // 0: none
  float scale, softcap;            // 0: no cap
  LocalIndex batches, queries, key_index, heads, groups;
  int64_t batch_offset;
  // Dropout; keep is 0 if there is none.
  float keep;  // 1 / (1 - p)
  uint32_t threshold;
  std::array<uint32_t, 2> random_key;
  const Numbers* later;
  // In the workspace:
  AttentionRow* row;         // [batch, row_tiles * kSightTile]
  AttentionRows* row_tile;   // [batch row_tiles]
  AttentionKeys* key_tile;   // [batch key_tiles]
  int* key_place;            // global indices, -1 at padding: [key_tiles * kSightTile]
  Vec<float, 2>* lse_delta;  // gradient: log2(e) lse and sum of do * o: [batch kv_heads, row_tiles * kSightTile]

  __device__ int64_t row_of(const RowStrides& at, int b, int h, int r) const {
    const unsigned s = static_cast<unsigned>(r) / static_cast<unsigned>(group);
    return b * at.batch + static_cast<int64_t>(s) * at.seq + h * at.kv_head +
           static_cast<int64_t>(r - static_cast<int>(s) * group) * at.group;
  }
  __device__ AttentionRow row_info(int b, int r) const {
    return row[static_cast<int64_t>(b) * row_tiles * kSightTile + r];
  }
  __device__ int document_of_key(int b, int t) const {
    return key_starts == nullptr || t >= keys ? 0 : key_starts[b * key_starts_at.batch + t * key_starts_at.key];
  }
  __device__ float sink(int h, int g) const {
    const int i = h * group + g;
    return sinks_dtype == DType::f32    ? static_cast<const float*>(sinks)[i]
           : sinks_dtype == DType::bf16 ? widen(static_cast<const bf16*>(sinks)[i])
                                        : widen(static_cast<const f16*>(sinks)[i]);
  }
  // The random number of a row's key with global index 0.
  __device__ uint64_t random_begin(int b, int h, int r, int place) const {
    int64_t at = batches[b] + batch_offset;
    at = at * queries.whole + place;
    at = at * heads.whole + heads[h];
    at = at * groups.whole + groups[r % group];
    return static_cast<uint64_t>(at) * static_cast<uint64_t>(key_index.whole);
  }
  __device__ bool kept(uint64_t at) const {
    const std::array<uint32_t, 4> w = kernels::random_block(random_key, static_cast<uint64_t>(later->step), at >> 2);
    const uint32_t low = at & 1 ? w[1] : w[0], high = at & 1 ? w[3] : w[2];
    return (at & 2 ? high : low) >= threshold;
  }
};

__device__ inline bool visible(const AttentionRow& row, int place, int document) {
  return place >= row.first && place <= row.last && document == row.document;
}

// Final factors of a row with the sum of exponentials `sum` relative to `top`, including the sink: o is multiplied by
// `factor`.
struct RowEnd {
  float factor, lse;
};
__device__ inline RowEnd end_row(const AttentionCall& a, float top, float sum, const AttentionRow& row, int h, int g) {
  if (a.sinks != nullptr && row.place >= 0 && a.heads[h] >= 0) {
    const float sink = a.sink(h, g), both = fmaxf(top, sink);
    if (both == -INFINITY) return {0, -INFINITY};
    const float factor = expf(top - both);
    sum = sum * factor + expf(sink - both);
    return {factor / sum, both + logf(sum)};
  }
  if (sum == 0) return {0, -INFINITY};
  return {1 / sum, top + logf(sum)};
}

constexpr unsigned char kSeenNone = 0, kSeenSome = 1, kSeenAll = 2;

__device__ inline unsigned char seen_by(const AttentionRows& r, const AttentionKeys& k) {
  if (k.high < r.first_low || k.low > r.last_high) return kSeenNone;
  if (k.document_high < r.document_low || k.document_low > r.document_high) return kSeenNone;
  return !k.pads && k.low >= r.first_high && k.high <= r.last_low && k.document_low == k.document_high &&
                 r.document_low == r.document_high && k.document_low == r.document_low
             ? kSeenAll
             : kSeenSome;
}
// The union of the bounds of `count` entries.
__device__ inline AttentionRows unite(const AttentionRows* r, int count) {
  AttentionRows all = r[0];
  for (int i = 1; i < count; ++i) {
    all.first_low = std::min(all.first_low, r[i].first_low), all.first_high = std::max(all.first_high, r[i].first_high);
    all.last_low = std::min(all.last_low, r[i].last_low), all.last_high = std::max(all.last_high, r[i].last_high);
    all.document_low = std::min(all.document_low, r[i].document_low);
    all.document_high = std::max(all.document_high, r[i].document_high);
  }
  return all;
}
__device__ inline AttentionKeys unite(const AttentionKeys* k, int count) {
  AttentionKeys all = k[0];
  for (int i = 1; i < count; ++i) {
    all.low = std::min(all.low, k[i].low), all.high = std::max(all.high, k[i].high);
    all.document_low = std::min(all.document_low, k[i].document_low);
    all.document_high = std::max(all.document_high, k[i].document_high);
    all.pads |= k[i].pads, all.run = 0;
  }
  return all;
}

__device__ inline int lanes_low(int x) {
  for (int mask = 16; mask > 0; mask /= 2) x = std::min(x, shuffle_xor(x, mask));
  return x;
}
__device__ inline int lanes_high(int x) {
  return lanes_max(x);
}

// Visit the tiles in [begin, end) for which seen[tile] is not kSeenNone, and none outside.
struct TileRange {
  int begin, end;
};
// Called by all threads of the block; `seen`: `count` bytes of shared memory.
template <int kThreads, typename F>
__device__ TileRange list_tiles(int count, unsigned char* seen, const F& of_tile) {
  __shared__ int low[32], high[32];
  int begin = INT_MAX, end = 0;
  for (int t = static_cast<int>(threadIdx.x); t < count; t += kThreads) {
    seen[t] = of_tile(t);
    if (seen[t] == kSeenNone) continue;
    begin = std::min(begin, t), end = std::max(end, t + 1);
  }
  begin = lanes_low(begin), end = lanes_high(end);
  if (threadIdx.x % 32 == 0) low[threadIdx.x / 32] = begin, high[threadIdx.x / 32] = end;
  __syncthreads();
  begin = low[0], end = high[0];
  for (int i = 1; i < kThreads / 32; ++i) begin = std::min(begin, low[i]), end = std::max(end, high[i]);
  return {std::min(begin, end), end};
}

// Iterates over tiles of kPer steps each.
template <int kPer>
__device__ __forceinline__ int next_step(const unsigned char* seen, int step, int end) {
  while (step < end && seen[step / kPer] == kSeenNone) ++step;
  return step;
}

// The keys visible to row i of the heads of a sequence of the batch; rows beyond the last are padding.
__device__ inline AttentionRow sight_of(const AttentionCall& a, int b, int i) {
  AttentionRow row = {INT_MAX, -1, 0, -1};
  if (i >= a.rows) return row;
  const int s = i / a.group;
  int64_t place = a.queries[s];
  if (a.moved && place >= 0) place += a.later->position;
  if (a.starts != nullptr) row.first = a.starts[b * a.starts_at.batch + s * a.starts_at.seq];
  if (a.key_starts != nullptr) row.document = row.first;
  if (place >= 0 && a.batches[b] >= 0 && a.groups[i % a.group] >= 0) {
    int64_t first = a.starts == nullptr || row.first < 0 ? 0 : row.first, last = a.causal ? place : INT_MAX - 1;
    if (a.window > 0) {
      if (place - a.window + 1 > first) first = place - a.window + 1;
      if (place + a.window - 1 < last) last = place + a.window - 1;
    }
    row.first = static_cast<int>(first), row.last = static_cast<int>(last), row.place = static_cast<int>(place);
  } else {
    row.first = INT_MAX;  // padding sees no key
  }
  return row;
}

// Fills the tables: one block of kSightTile threads per batch and tile, of rows and of keys.
template <int kThreads>
__global__ void __launch_bounds__(kThreads) attention_sight(AttentionCall a) {
  static_assert(kThreads == kSightTile);
  const int tiles = std::max(a.row_tiles, a.key_tiles), lane = static_cast<int>(threadIdx.x);
  const int b = static_cast<int>(blockIdx.x) / tiles, t = static_cast<int>(blockIdx.x) % tiles, i = t * kThreads + lane;
  const AttentionRow row = sight_of(a, b, i);
  if (t < a.row_tiles) a.row[static_cast<int64_t>(b) * a.row_tiles * kThreads + i] = row;
  const int64_t key = i < a.keys ? a.key_index[i] : -1;
  if (b == 0 && t < a.key_tiles) a.key_place[i] = static_cast<int>(key);
  const int document = a.document_of_key(b, i);

  __shared__ int bounds[kThreads / 32][12];
  const int made[11] = {lanes_low(row.first),
                        lanes_high(row.first),
                        lanes_low(row.last),
                        lanes_high(row.last),
                        lanes_low(row.document),
                        lanes_high(row.document),
                        lanes_low(key < 0 ? INT_MAX : static_cast<int>(key)),
                        lanes_high(static_cast<int>(key)),
                        lanes_low(document),
                        lanes_high(document),
                        lanes_high(key < 0)};
  if (lane % 32 == 0)
    for (int j = 0; j < 11; ++j) bounds[lane / 32][j] = made[j];
  __syncthreads();
  const auto low = [&](int j) { return std::min(bounds[0][j], bounds[1][j]); };
  const auto high = [&](int j) { return std::max(bounds[0][j], bounds[1][j]); };
  const bool run = (key < 0 ? lane > high(7) - low(6) : key == low(6) + lane) && low(8) == high(9);
  const int breaks = lanes_high(!run);
  if (lane % 32 == 0) bounds[lane / 32][11] = breaks;
  __syncthreads();
  if (lane != 0) return;
  if (t < a.row_tiles)
    a.row_tile[static_cast<int64_t>(b) * a.row_tiles + t] = {low(0), high(1), low(2), high(3), low(4), high(5)};
  if (t < a.key_tiles)
    a.key_tile[static_cast<int64_t>(b) * a.key_tiles + t] = {low(6), high(7), low(8), high(9), high(10), !high(11)};
}

// Copies [kTile head_dim] to shared memory as fp32, with row stride `wide`; at(row): offset of a row, -1: zeros.
template <typename T, int kTile, typename F>
__device__ void copy_widened(float* to, int wide, int head_dim, const T* from, const F& at) {
  const int lane = static_cast<int>(threadIdx.x) % 32, groups = static_cast<int>(blockDim.x) / 32;
  for (int i = static_cast<int>(threadIdx.x) / 32; i < kTile; i += groups) {
    const int64_t begin = at(i);
    for (int d = lane; d < head_dim; d += 32) to[i * wide + d] = begin < 0 ? 0 : widen(from[begin + d]);
  }
}

// Block size of kernels without tensor cores: for each of kTile rows, at most as many lanes as there are others at a
// time.
template <int kTile>
constexpr int kPlainThreads = std::min(256, kTile* kTile);

// Host side.

[[noreturn]] inline void refuse_head(const AttentionCall& a) {
  throw base::UserError("attention", "a block of this device has {} KiB of shared memory, too little for heads of {}",
                        most_shared() / 1024, a.head_dim);
}

// Partitions the workspace into arrays; null: only computes the size.
inline int64_t attention_tables(AttentionCall& a, std::byte* memory, bool gradient) {
  int64_t bytes = 0;
  const auto take = [&]<typename E>(E*& to, int64_t count) {
    to = memory == nullptr ? nullptr : reinterpret_cast<E*>(memory + bytes);
    bytes += (count * static_cast<int64_t>(sizeof(E)) + 63) / 64 * 64;
  };
  const int64_t batch = a.batch, rows = static_cast<int64_t>(a.row_tiles) * kSightTile;
  take(a.row, batch * rows);
  take(a.row_tile, batch * a.row_tiles);
  take(a.key_tile, batch * a.key_tiles);
  take(a.key_place, static_cast<int64_t>(a.key_tiles) * kSightTile);
  if (gradient) take(a.lse_delta, batch * a.kv_heads * rows);
  return bytes;
}

inline void attention_sizes(AttentionCall& a, const tensor::Shape& q, const tensor::Shape& k) {
  const auto fits = [](int64_t size) {
    base::require(size < INT_MAX / 2, "attention", "{} rows or keys of a head on a device", size);
    return static_cast<int>(size);
  };
  a.batch = fits(q.size("batch")), a.seq = fits(q.size("seq")), a.keys = fits(k.size("key_seq"));
  a.kv_heads = fits(q.size("kv_heads")), a.group = fits(q.size("group")), a.head_dim = fits(q.size("head_dim"));
  a.rows = fits(int64_t{a.seq} * a.group);
  a.row_tiles = (a.rows + kSightTile - 1) / kSightTile, a.key_tiles = (a.keys + kSightTile - 1) / kSightTile;
}

// Whether a library supports attention of these sizes and attributes; other properties of a call may still prevent it.
inline bool library_knows(const AttentionCall& sizes, DType dtype, bool masked, const tensor::Attributes& attributes) {
  return tensor::size_of(dtype) == 2 && sizes.seq == sizes.keys && sizes.seq > 1 && sizes.head_dim % 8 == 0 &&
         sizes.head_dim <= 128 && !masked && attributes.integer_or("window", 0) == 0 &&
         attributes.number_or("softcap", 0.0) == 0 && attributes.number_or("dropout", 0.0) == 0;
}
// The operands that make attention `masked`: visibility differs from row to row, or covers more than keys.
constexpr size_t kAttentionMasks[] = {kernels::AttentionIn::kStarts, kernels::AttentionIn::kKeyStarts,
                                      kernels::AttentionIn::kSinks};

// With so few rows, each is processed by a separate block; beyond 2 kFewKeys keys by several blocks of kFewKeys keys
// each, whose results are merged afterwards (Dao et al. 2023, "Flash-Decoding for long-context inference").
constexpr int kFewRows = 8, kFewKeys = 1024;
inline int few_cuts(const AttentionCall& a) {
  return a.rows > kFewRows || a.keys <= 2 * kFewKeys ? 1 : (a.keys + kFewKeys - 1) / kFewKeys;
}
// Partial results of a block: sums of values, maximum score and sum of exponentials, in fp32.
inline int64_t few_bytes(const AttentionCall& a) {
  const int cuts = few_cuts(a);
  return cuts == 1 ? 0 : int64_t{4} * a.batch * a.kv_heads * a.rows * cuts * (a.head_dim + 2);
}

inline int64_t attention_bytes(const KernelShapes& shapes, bool gradient) {
  AttentionCall a = {};
  using In = kernels::AttentionIn;
  const tensor::Type& q = *shapes.ins[In::kQ];
  attention_sizes(a, q.shape, shapes.ins[In::kK]->shape);
  const int64_t tables = std::max(attention_tables(a, nullptr, gradient), gradient ? 0 : few_bytes(a));
  const bool masked =
      std::ranges::any_of(kAttentionMasks, [&](size_t i) { return i < shapes.ins.size() && shapes.ins[i] != nullptr; });
  if (!library_knows(a, q.dtype, masked, shapes.attributes)) return tables;
  return std::max(tables, kernels::library_attention_bytes(a.batch, a.kv_heads, a.group, a.seq, gradient));
}

inline int64_t stride_of(const tensor::Shape& shape, std::string_view dim) {
  const int at = shape.find(dim);
  return at < 0 ? 0 : shape.stride(static_cast<size_t>(at));
}
inline RowStrides row_strides(const View& x) {
  const tensor::Shape& s = x.shape();
  return {stride_of(s, "batch"), stride_of(s, "seq"), stride_of(s, "kv_heads"), stride_of(s, "group")};
}
inline KeyStrides key_strides(const View& x) {
  const tensor::Shape& s = x.shape();
  return {stride_of(s, "batch"), stride_of(s, "key_seq"), stride_of(s, "kv_heads")};
}

// For attention, or its gradient, which have the same first operands.
inline AttentionCall attention_call(const KernelCall& call, bool gradient) {
  using In = kernels::AttentionIn;
  AttentionCall a = {};
  const View &q = call.ins[In::kQ], &k = call.ins[In::kK], &v = call.ins[In::kV], &sinks = call.ins[In::kSinks];
  attention_sizes(a, q.shape(), k.shape());
  for (const View* x : {&q, &k, &v})
    base::require(
        x->shape().rank() > 0 && x->shape()[x->shape().rank() - 1].name == "head_dim" && x->dtype() == q.dtype(),
        "attention", "{} of {} does not end with head_dim, or differs from q", to_string(x->shape()),
        name_of(x->dtype()));
  a.q = q.data, a.k = k.data, a.v = v.data;
  a.q_at = row_strides(q), a.k_at = key_strides(k), a.v_at = key_strides(v);
  const auto integers = [&](size_t i) {
    const View& x = call.ins[i];
    base::require(!x.data || x.dtype() == DType::i32, "attention", "starts are int32, not {}", name_of(x.dtype()));
    return data<const int32_t>(x);
  };
  a.starts = integers(In::kStarts), a.starts_at = row_strides(call.ins[In::kStarts]);
  a.key_starts = integers(In::kKeyStarts), a.key_starts_at = key_strides(call.ins[In::kKeyStarts]);
  base::require(!a.key_starts || a.starts, "attention", "key_starts without starts");
  a.batches = local_index(call.index("batch")), a.queries = local_index(call.index("seq"));
  a.moved = call.moves("seq");
  if (a.moved) a.later = call.later;
  a.key_index = local_index(call.index("key_seq"));
  a.heads = local_index(call.index("kv_heads")), a.groups = local_index(call.index("group"));
  base::require(a.key_index.whole < INT_MAX / 2 && a.queries.whole < INT_MAX / 2, "attention",
                "a sequence of {} positions on a device", a.key_index.whole);
  for (int i = 0; i < a.key_index.count && sinks.data; ++i)
    if (a.key_index.global[i] == 0 && a.key_index.begin[i + 1] > a.key_index.begin[i]) a.sinks = sinks.data;
  a.sinks_dtype = sinks.dtype();
  a.causal = call.attributes.integer("causal") != 0;
  a.window = static_cast<int>(std::min<int64_t>(call.attributes.integer_or("window", 0), INT_MAX / 2));
  a.scale = static_cast<float>(call.attributes.number("scale"));
  a.softcap = static_cast<float>(call.attributes.number_or("softcap", 0.0));
  for (size_t i = 0; i < 4; ++i) a.add[i] = call.accumulates(i);
  if (const double p = call.attributes.number_or("dropout", 0.0); p > 0) {
    a.batch_offset = call.numbers.batch_offset;
    a.keep = static_cast<float>(1 / (1 - p)), a.threshold = kernels::dropout_threshold(p);
    a.random_key = kernels::random_key(call.numbers.seed, call.attributes.text("key"));
    a.later = call.later;
  }
  const int64_t bytes = attention_tables(a, call.workspace.data(), gradient);
  base::require(bytes <= static_cast<int64_t>(call.workspace.size()), "attention", "a workspace of {} bytes, not {}",
                call.workspace.size(), bytes);
  return a;
}

inline AttentionCall forward_call(const KernelCall& call) {
  AttentionCall a = attention_call(call, false);
  const View &o = call.outs[kernels::AttentionOut::kO], &lse = call.outs[kernels::AttentionOut::kLse];
  base::require(lse.dtype() == DType::f32, "attention", "lse is fp32 on a device, not {}", name_of(lse.dtype()));
  a.out = o.data, a.o_at = row_strides(o), a.lse = data<float>(lse), a.lse_at = row_strides(lse);
  return a;
}

// Attention of so few rows that each is processed by its own block, as in decoding: attention_few.cuh. Returns false,
// with nothing enqueued, if it does not apply.
bool attention_of_few(const KernelCall& call, const AttentionCall& a);

// One block per `each` of the `count` keys or rows of every head.
inline dim3 blocks_of(const AttentionCall& a, int count, int each) {
  return dim3(static_cast<unsigned>(a.batch * a.kv_heads * ((count + each - 1) / each)));
}

// Whether the tensor core kernels can access these, 16 bytes at a time.
inline bool attention_is_wide(const AttentionCall& a) {
  return a.head_dim % 8 == 0 && a.scale > 0 && all_wide(a.q, a.k, a.v, a.o, a.d_o, a.out, a.dq, a.dk, a.dv);
}

// The library that is tried first; null: none, as in the emulation, where tests set it.
extern kernels::AttentionByLibrary attention_by_library;

// The request to a library; nothing if our own kernels must be used.
inline std::optional<kernels::LibraryAttention> of_library(const KernelCall& call, const AttentionCall& a,
                                                           bool gradient) {
  const auto all = [](const LocalIndex& i, int64_t size) {
    return i.count == 1 && i.global[0] >= 0 && i.begin[1] == size;
  };
  const auto heads = [&](const RowStrides& at) { return a.kv_heads == 1 || at.kv_head == a.group * at.group; };
  const bool adds = std::ranges::any_of(a.add, [](bool add) { return add; });
  const int64_t bytes = kernels::library_attention_bytes(a.batch, a.kv_heads, a.group, a.seq, gradient);
  const DType dtype = call.ins[kernels::AttentionIn::kQ].dtype();
  const bool masked = std::ranges::any_of(kAttentionMasks, [&](size_t i) { return call.ins[i].data != nullptr; });
  if (attention_by_library == nullptr || bytes == 0 || bytes > static_cast<int64_t>(call.workspace.size()) || adds ||
      a.moved || !attention_is_wide(a) || !library_knows(a, dtype, masked, call.attributes))
    return std::nullopt;
  if (!all(a.batches, a.batch) || !all(a.queries, a.seq) || !all(a.key_index, a.keys) || !all(a.heads, a.kv_heads) ||
      !all(a.groups, a.group) || a.queries.global[0] != a.key_index.global[0])
    return std::nullopt;
  for (const RowStrides* at : {&a.q_at, &a.o_at, &a.do_at, &a.dq_at, &a.lse_at})
    if (!heads(*at)) return std::nullopt;
  const auto rows = [&](const void* data, const RowStrides& at) {
    return kernels::AttentionOperand{data, {at.batch, a.group > 1 ? at.group : at.kv_head, at.seq}};
  };
  const auto keys = [](const void* data, const KeyStrides& at) {
    return kernels::AttentionOperand{data, {at.batch, at.kv_head, at.key}};
  };
  kernels::LibraryAttention made = {.batch = a.batch,
                                    .heads = int64_t{a.kv_heads} * a.group,
                                    .kv_heads = a.kv_heads,
                                    .seq = a.seq,
                                    .head_dim = a.head_dim,
                                    .dtype = dtype,
                                    .causal = a.causal,
                                    .gradient = gradient,
                                    .scale = a.scale,
                                    .q = rows(a.q, a.q_at),
                                    .k = keys(a.k, a.k_at),
                                    .v = keys(a.v, a.v_at),
                                    .o = rows(gradient ? a.o : a.out, a.o_at),
                                    .lse = rows(a.lse, a.lse_at),
                                    .workspace = call.workspace.data(),
                                    .workspace_bytes = bytes};
  if (gradient) {
    made.d_o = rows(a.d_o, a.do_at), made.dq = rows(a.dq, a.dq_at);
    made.dk = keys(a.dk, a.dk_at), made.dv = keys(a.dv, a.dv_at);
  }
  return made;
}

inline void launch_sight(const KernelCall& call, const AttentionCall& a) {
  launch(*call.stream, dim3(static_cast<unsigned>(a.batch * std::max(a.row_tiles, a.key_tiles))), dim3(kSightTile), 0,
         attention_sight<kSightTile>, a);
}

}  // namespace kintsugi::KINTSUGI_GPU
