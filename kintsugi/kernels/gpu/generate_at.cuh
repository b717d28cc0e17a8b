// Operations on rows of different texts, each at its own position (ops/generate_at.cpp).
#include "kintsugi/kernels/gpu/rotary_turns.h"
#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kAtThreads = 256, kAtWarps = kAtThreads / 32;
constexpr int kMostAtPairs = 256;

// Positions of the tokens of a batch, in device memory: token s of row b has position at[b] + s.
struct RowPlaces {
  const int32_t* at;
  LocalIndex batch;
  Divisor seq;  // tokens per row of the batch

  // -1 at padding.
  __device__ int64_t operator()(int64_t token) const {
    const int64_t row = seq.quotient(token), s = token - row * seq.by;
    const int64_t first = batch[row] < 0 ? -1 : at[row];
    return first < 0 ? -1 : first + s;
  }
};

void require_equal_dtype(std::string_view kind, const View& x, const View& y) {
  base::require(x.dtype() == y.dtype(), "kernel", "{} of {} and {} on a device", kind, name_of(x.dtype()),
                name_of(y.dtype()));
}

RowPlaces places_of_rows(std::string_view kind, const KernelCall& call, const View& at, int64_t seq) {
  base::require(at.dtype() == DType::i32, "kernel", "{}: positions are int32, not {}", kind, name_of(at.dtype()));
  return {data<const int32_t>(at), local_index(call.index("batch")), Divisor(std::max<int64_t>(seq, 1))};
}

// Rows of `bytes` bytes between the tokens of a batch and the positions of another value.
struct RowMove {
  std::byte* to;
  const std::byte* from;
  int64_t rows, bytes;
  RowPlaces place;
  const int32_t* text;      // scatters: the text of a row of the batch
  int64_t texts, per_text;  // and the positions of each
  LocalIndex other;         // of the positions
  int word;
};

template <typename W, bool kGathers>
__device__ __forceinline__ void move_row(const RowMove& m, int64_t row) {
  const int64_t words = m.bytes / static_cast<int64_t>(sizeof(W)), position = m.place(row);
  int64_t other = position < 0 ? -1 : m.other.local_of(position);
  if constexpr (!kGathers) {
    const int64_t text = m.text[m.place.seq.quotient(row)];
    if (other < 0 || text < 0 || text >= m.texts) return;
    other += text * m.per_text;
  }
  const int64_t from = kGathers ? other : row, to = kGathers ? row : other;
  const W* const source = reinterpret_cast<const W*>(m.from + from * m.bytes);
  W* const target = reinterpret_cast<W*>(m.to + to * m.bytes);
  for (int64_t w = threadIdx.x; w < words; w += blockDim.x) target[w] = from < 0 ? W{} : source[w];
}

// One block per row. kGathers: to the tokens, with zeros where the other value lacks the position; else from the
// tokens, skipping those.
template <bool kGathers>
__global__ void __launch_bounds__(kAtThreads) move_rows_at(RowMove m) {
  const int64_t row = blockIdx.x;
  switch (m.word) {
    case 16:
      return move_row<Word16, kGathers>(m, row);
    case 8:
      return move_row<uint64_t, kGathers>(m, row);
    case 4:
      return move_row<uint32_t, kGathers>(m, row);
    case 2:
      return move_row<uint16_t, kGathers>(m, row);
    default:
      return move_row<uint8_t, kGathers>(m, row);
  }
}

template <bool kGathers>
void launch_row_move(const KernelCall& call, RowMove m) {
  if (m.rows == 0 || m.bytes == 0) return;
  m.word = word_of({address(m.to), address(m.from), m.bytes});
  launch(*call.stream, dim3(static_cast<unsigned>(m.rows)), dim3(kAtThreads), 0, move_rows_at<kGathers>, m);
}

// x: [batch seq embed] -> rows of a list
struct TakenRows {
  std::byte* to;
  const std::byte* from;
  const int32_t* rows;
  int64_t batch, bytes, step;  // step: bytes from one row of the batch to the next
};

__global__ void __launch_bounds__(kAtThreads) take_listed(TakenRows t) {
  const int64_t row = t.rows[blockIdx.x], last = t.step - t.bytes;
  const bool there = row >= 0 && row < t.batch;
  std::byte* const to = t.to + static_cast<int64_t>(blockIdx.x) * t.bytes;
  const std::byte* const from = t.from + row * t.step + last;
  for (int64_t i = threadIdx.x; i < t.bytes; i += blockDim.x) to[i] = there ? from[i] : std::byte{0};
}

struct RotaryAt {
  const void* x;
  void* y;
  int64_t elements;
  Divisor head_dim, per_token;  // elements
  RowPlaces place;
  bool interleaved;
  RotaryTurns<kMostAtPairs> turns;
};

// A thread per pair, or per element beyond the pairs.
template <typename T>
__global__ void __launch_bounds__(kAtThreads) turn_at(RotaryAt r) {
  const T* const x = static_cast<const T*>(r.x);
  T* const y = static_cast<T*>(r.y);
  const int half = r.turns.half;
  for (int64_t i = first_piece(); i < r.elements; i += all_threads()) {
    const int64_t head = r.head_dim.quotient(i), d = i - head * r.head_dim.by, begin = i - d;
    if (d >= 2 * half) {
      y[i] = x[i];
      continue;
    }
    if (d >= half) continue;  // the thread of the first half turns the pair
    const int64_t position = r.place(r.per_token.quotient(i));
    float cosine = 0, sine = 0;
    r.turns.angle(static_cast<int>(d), position < 0 ? 0 : position, cosine, sine);
    const int64_t first = begin + (r.interleaved ? 2 * d : d), second = r.interleaved ? first + 1 : first + half;
    T p = x[first], q = x[second];
    turn_pair(p, q, cosine, sine);
    y[first] = p, y[second] = q;
  }
}

struct AttentionAtStrides {
  int64_t outer, seq, kv_head, group;  // outer: of the batch, or of texts
};

struct AttentionAt {
  const void *q, *k, *v;
  void* o;
  AttentionAtStrides q_at, k_at, v_at, o_at;
  const int32_t* text;
  AnyData sinks;  // [kv_heads group]; null: none, or another rank has the first key
  RowPlaces place;
  LocalIndex keys, heads, groups;
  int64_t texts;
  int seq, kv_heads, group, head_dim;
  bool causal;
  int64_t window;  // 0: none
  float scale, softcap;
};

// One block per query of a head: each warp takes every kAtWarps-th visible key with an online softmax, kEach elements
// of a head per lane, and the block merges the warps at the end.
template <typename T, int kEach>
__global__ void __launch_bounds__(kAtThreads, kEach <= 8 ? 2 : 1) attend_at(AttentionAt a) {
  __shared__ float tops[kAtWarps], sums[kAtWarps], parts[kAtWarps][32 * kEach];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  int rest = static_cast<int>(blockIdx.x);
  const int g = rest % a.group;
  rest /= a.group;
  const int h = rest % a.kv_heads, token = rest / a.kv_heads, b = token / a.seq, s = token % a.seq;
  const int64_t query = a.place(token), text = a.text[b];
  const bool there = query >= 0 && text >= 0 && text < a.texts && a.heads[h] >= 0 && a.groups[g] >= 0;
  const auto row_of = [&](const AttentionAtStrides& at) {
    return b * at.outer + s * at.seq + h * at.kv_head + g * at.group;
  };
  const T* const q_row = static_cast<const T*>(a.q) + row_of(a.q_at);
  T* const o_row = static_cast<T*>(a.o) + row_of(a.o_at);
  if (!there) {
    for (int d = thread; d < a.head_dim; d += kAtThreads) o_row[d] = narrow<T>(0.0f);
    return;
  }
  const T* const keys = static_cast<const T*>(a.k) + text * a.k_at.outer + h * a.k_at.kv_head;
  const T* const values = static_cast<const T*>(a.v) + text * a.v_at.outer + h * a.v_at.kv_head;
  float q[kEach], o[kEach] = {}, top = -INFINITY, sum = 0;
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) q[i] = lane + 32 * i < a.head_dim ? widen(q_row[lane + 32 * i]) : 0;
  const int64_t most = INT64_MAX / 2, low = a.window > 0 ? query - a.window + 1 : 0,
                high = a.causal       ? query
                       : a.window > 0 ? query + a.window - 1
                                      : most;
  GPU_ROLL
  for (int run = 0; run < a.keys.count; ++run) {
    const int64_t global = a.keys.global[run], from = a.keys.begin[run] - global;
    if (global < 0) continue;
    const int64_t begin = a.keys.begin[run] > low + from ? a.keys.begin[run] : low + from;
    const int64_t end = a.keys.begin[run + 1] < high + 1 + from ? a.keys.begin[run + 1] : high + 1 + from;
    for (int64_t at = begin; at < end; at += kAtWarps) {
      const int64_t key = at + warp;  // all warps loop together, so that all lanes exchange
      float score = 0, value[kEach];
      GPU_UNROLL
      for (int i = 0; i < kEach; ++i) {
        const int d = lane + 32 * i;
        const bool reads = key < end && d < a.head_dim;
        score += reads ? q[i] * widen(keys[key * a.k_at.seq + d]) : 0;
        value[i] = reads ? widen(values[key * a.v_at.seq + d]) : 0;
      }
      score = lanes_sum(score) * a.scale;
      if (a.softcap > 0) score = a.softcap * tanhf(score / a.softcap);
      if (key >= end) continue;
      const float highest = fmaxf(top, score), shrink = expf(top - highest), p = expf(score - highest);
      top = highest, sum = sum * shrink + p;
      GPU_UNROLL
      for (int i = 0; i < kEach; ++i) o[i] = o[i] * shrink + p * value[i];
    }
  }
  if (lane == 0) tops[warp] = top, sums[warp] = sum;
  GPU_UNROLL
  for (int i = 0; i < kEach; ++i) parts[warp][lane + 32 * i] = o[i];
  __syncthreads();
  float highest = -INFINITY, all = 0, factor[kAtWarps], sink[1] = {-INFINITY};
  if (a.sinks.data != nullptr) a.sinks.load(sink, h * a.group + g);
  highest = sink[0];
  GPU_UNROLL
  for (int w = 0; w < kAtWarps; ++w) highest = fmaxf(highest, tops[w]);
  GPU_UNROLL
  for (int w = 0; w < kAtWarps; ++w) {
    factor[w] = tops[w] == -INFINITY ? 0 : expf(tops[w] - highest);
    all += sums[w] * factor[w];
  }
  if (a.sinks.data != nullptr) all += expf(sink[0] - highest);
  for (int d = thread; d < a.head_dim; d += kAtThreads) {
    float made = 0;
    GPU_UNROLL
    for (int w = 0; w < kAtWarps; ++w) made += parts[w][d] * factor[w];
    o_row[d] = narrow<T>(all > 0 ? made / all : 0);
  }
}

AttentionAtStrides attention_at_strides(const View& x, std::string_view outer, std::string_view seq) {
  const tensor::Shape& s = x.shape();
  const auto of = [&](std::string_view dim) {
    const int at = s.find(dim);
    return at < 0 ? int64_t{0} : s.stride(static_cast<size_t>(at));
  };
  base::require(s.rank() > 0 && s[s.rank() - 1].name == "head_dim", "attention_at", "{} does not end with head_dim",
                to_string(s));
  return {of(outer), of(seq), of("kv_heads"), of("group")};
}

}  // namespace

// cache, y: [text key_seq kv_heads head_dim], x: [batch seq kv_heads head_dim], text, at: [batch]
void cache_write_at(const KernelCall& call) {
  using In = kernels::CacheWriteAtIn;
  const View &cache = call.ins[In::kCache], &x = call.ins[In::kX], &y = call.outs[0];
  require_equal_dtype("cache_write_at", cache, y);
  require_equal_dtype("cache_write_at", x, y);
  if (y.data != cache.data) call.stream->copy(y.data, cache.data, cache.type.bytes());
  launch_row_move<false>(call, {.to = y.data,
                                .from = x.data,
                                .rows = x.size("batch") * x.size("seq"),
                                .bytes = x.size("kv_heads") * x.size("head_dim") * tensor::size_of(x.dtype()),
                                .place = places_of_rows("cache_write_at", call, call.ins[In::kAt], x.size("seq")),
                                .text = data<const int32_t>(call.ins[In::kText]),
                                .texts = cache.size("text"),
                                .per_text = cache.size("key_seq"),
                                .other = local_index(call.index("key_seq")),
                                .word = 1});
}

// q, o: [batch seq kv_heads group head_dim], k, v: [text key_seq kv_heads head_dim], text, at: [batch]
void attention_at(const KernelCall& call) {
  using In = kernels::AttentionAtIn;
  const View &q = call.ins[In::kQ], &k = call.ins[In::kK], &v = call.ins[In::kV], &o = call.outs[0];
  const View& sinks = call.ins[In::kSinks];
  for (const View* x : {&k, &v, &o}) require_equal_dtype("attention_at", q, *x);
  const auto size = [&](std::string_view dim) { return static_cast<int>(q.size(dim)); };
  AttentionAt a = {.q = q.data,
                   .k = k.data,
                   .v = v.data,
                   .o = o.data,
                   .q_at = attention_at_strides(q, "batch", "seq"),
                   .k_at = attention_at_strides(k, "text", "key_seq"),
                   .v_at = attention_at_strides(v, "text", "key_seq"),
                   .o_at = attention_at_strides(o, "batch", "seq"),
                   .text = data<const int32_t>(call.ins[In::kText]),
                   .sinks = {},
                   .place = places_of_rows("attention_at", call, call.ins[In::kAt], q.size("seq")),
                   .keys = local_index(call.index("key_seq")),
                   .heads = local_index(call.index("kv_heads")),
                   .groups = local_index(call.index("group")),
                   .texts = k.size("text"),
                   .seq = size("seq"),
                   .kv_heads = size("kv_heads"),
                   .group = size("group"),
                   .head_dim = size("head_dim"),
                   .causal = call.attributes.integer("causal") != 0,
                   .window = call.attributes.integer_or("window", 0),
                   .scale = static_cast<float>(call.attributes.number("scale")),
                   .softcap = static_cast<float>(call.attributes.number_or("softcap", 0.0))};
  if (q.elements() == 0) return;
  for (int i = 0; i < a.keys.count && sinks.data != nullptr; ++i)
    if (a.keys.global[i] == 0 && a.keys.begin[i + 1] > a.keys.begin[i]) a.sinks = any_data("attention_at", sinks);
  base::require(a.head_dim <= 512, "attention_at", "heads of {} on a device: at most 512", a.head_dim);
  const int64_t blocks = q.elements() / a.head_dim;
  dispatch("attention_at", q.dtype(), [&]<typename T>(T) {
    const auto kernel = a.head_dim <= 64    ? attend_at<T, 2>
                        : a.head_dim <= 128 ? attend_at<T, 4>
                        : a.head_dim <= 256 ? attend_at<T, 8>
                                            : attend_at<T, 16>;
    launch(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(kAtThreads), 0, kernel, a);
  });
}

// x: [batch seq ... head_dim], at: [batch]
void rotary_at(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  require_equal_dtype("rotary_at", x, y);
  RotaryAt r = {.x = x.data,
                .y = y.data,
                .elements = x.elements(),
                .head_dim = Divisor(x.size("head_dim")),
                .per_token = Divisor(x.shape().stride(static_cast<size_t>(x.shape().find("seq")))),
                .place = places_of_rows("rotary_at", call, call.ins[1], x.size("seq")),
                .interleaved = call.attributes.integer("interleaved") != 0,
                .turns = {}};
  base::require(fill_turns(r.turns, call), "kernel", "rotary_at of heads of {} on a device: at most {} are turned",
                x.size("head_dim"), 2 * kMostAtPairs);
  if (r.elements == 0) return;
  dispatch("rotary_at", x.dtype(), [&]<typename T>(T) { launch_pieces(*call.stream, r.elements, turn_at<T>, r); });
}

// table: [position embed], at: [batch], y: [batch seq embed]
void position_at(const KernelCall& call) {
  const View &table = call.ins[0], &y = call.outs[0];
  require_equal_dtype("position_at", table, y);
  launch_row_move<true>(call, {.to = y.data,
                               .from = table.data,
                               .rows = y.size("batch") * y.size("seq"),
                               .bytes = table.size("embed") * tensor::size_of(table.dtype()),
                               .place = places_of_rows("position_at", call, call.ins[1], y.size("seq")),
                               .text = nullptr,
                               .texts = 0,
                               .per_text = 0,
                               .other = local_index(call.index("position")),
                               .word = 1});
}

// x: [batch seq embed], rows: [row], y: [row embed]
void take_rows(const KernelCall& call) {
  const View &x = call.ins[0], &rows = call.ins[1], &y = call.outs[0];
  require_equal_dtype("take_rows", x, y);
  base::require(rows.dtype() == DType::i32, "kernel", "take_rows: rows are int32, not {}", name_of(rows.dtype()));
  const int64_t bytes = x.size("embed") * tensor::size_of(x.dtype());
  if (rows.elements() == 0 || bytes == 0) return;
  launch(*call.stream, dim3(static_cast<unsigned>(rows.elements())), dim3(kAtThreads), 0, take_listed,
         TakenRows{.to = y.data,
                   .from = x.data,
                   .rows = data<const int32_t>(rows),
                   .batch = x.size("batch"),
                   .bytes = bytes,
                   .step = x.size("seq") * bytes});
}

}  // namespace kintsugi::KINTSUGI_GPU
