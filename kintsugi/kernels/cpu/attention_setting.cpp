#include "kintsugi/kernels/cpu/attention_setting.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/kernels/cpu/attention_few.h"
#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::cpu {
namespace {

// Shared by both passes for a tile's queries.
void take_queries(AttentionScratch& t, bool documents, Scratch& scratch) {
  t.score_t = scratch.take<float>(kTileKeys * kTileQueries);
  t.top = scratch.take<float>(kTileQueries);
  t.sum = scratch.take<float>(kTileQueries);
  t.factor = scratch.take<float>(kTileQueries);
  t.start = scratch.take<int32_t>(kTileQueries);
  t.last = scratch.take<int32_t>(kTileQueries);
  t.block_low = scratch.take<uint32_t>(kTileQueries);
  t.block_high = scratch.take<uint32_t>(kTileQueries);
  t.word = scratch.take<uint32_t>(kTileQueries);
  if (documents) t.document = scratch.take<int32_t>(kTileQueries);
}

NarrowScratch take_narrow(const AttentionSetting& s, bool grad, Scratch& scratch) {
  using tensor::bf16;
  const int64_t tile = kTileQueries * padded(s.head_dim), square = kTileKeys * kTileQueries;
  const int64_t tiles = grad ? std::min(kBlockKeys / kTileKeys, s.num_key_tiles()) : s.num_key_tiles();
  NarrowScratch n = {};
  n.held = -1;
  n.q = scratch.take<bf16>(tile);
  n.q_panels = scratch.take<bf16>(tile);
  n.p_panels = scratch.take<bf16>(square);
  n.keys = scratch.take<bf16>(tiles * tile);
  n.turned = scratch.take<bf16>(tiles * tile);
  n.sums_t = scratch.take<float>(tile);
  if (!grad) return n;
  n.d_o = scratch.take<bf16>(tile);
  n.do_panels = scratch.take<bf16>(tile);
  n.q_columns = scratch.take<bf16>(tile);
  n.do_columns = scratch.take<bf16>(tile);
  n.p = scratch.take<bf16>(square);
  n.dscore = scratch.take<bf16>(square);
  n.values = scratch.take<bf16>(tiles * tile);
  return n;
}

AttentionScratch take_thread(const AttentionSetting& s, bool narrow, bool grad, bool documents, Scratch& scratch) {
  const int64_t wide = padded(s.head_dim);
  AttentionScratch t = {};
  take_queries(t, documents, scratch);
  if (narrow) {
    t.narrow = take_narrow(s, grad, scratch);
  } else {
    t.q_t = scratch.take<float>(s.head_dim * kTileQueries);
    t.rows = scratch.take<float>(kTileQueries * wide);
    t.keys = scratch.take<float>(kTileKeys * wide);
    t.values = scratch.take<float>(kTileKeys * wide);
  }
  if (!grad) return t;
  t.dscore_t = scratch.take<float>(kTileKeys * kTileQueries);
  if (!narrow) {
    t.do_t = scratch.take<float>(s.head_dim * kTileQueries);
    t.drows = scratch.take<float>(kTileQueries * wide);
  }
  t.grad = scratch.take<float>(kTileQueries * wide);
  const int64_t keys = std::min(kBlockKeys, (s.key_seq + kTileKeys - 1) / kTileKeys * kTileKeys);
  t.dk = scratch.take<float>(keys * wide);
  t.dv = scratch.take<float>(keys * wide);
  return t;
}

void fill_places(const tensor::DimIndex& index, int32_t* places) {
  for (const tensor::Segment& s : index.segments())
    for (int64_t i = 0; i < s.count; ++i) *places++ = s.global < 0 ? -1 : static_cast<int32_t>(s.global + i);
}

void fill_start_ranges(const AttentionSetting& s) {
  for (int64_t b = 0; b < s.batch; ++b)
    for (int64_t t = 0; t < s.num_key_tiles(); ++t) {
      const int32_t* of_batch = s.key_starts + b * s.key_seq;
      const auto [low, high] =
          std::minmax_element(of_batch + t * kTileKeys, of_batch + std::min(s.key_seq, (t + 1) * kTileKeys));
      s.start_ranges[b * s.num_key_tiles() + t] = {*low, *high};
    }
}

}  // namespace

RowEnd end_of_row(const AttentionSetting& s, const AttentionScratch& t, int64_t head, int64_t begin, int64_t i) {
  const float sum = t.sum[i], top = t.top[i];
  const bool none = sum == 0.0f;
  if (s.sinks && t.last[i] >= 0) {
    const float sink = s.sinks[head * s.group + (begin + i) % s.group], most = none ? sink : std::max(top, sink);
    const float part = none ? 0.0f : std::exp(top - most), whole = sum * part + std::exp(sink - most);
    return {part / whole, most + std::log(whole)};
  }
  if (none) return {0.0f, -std::numeric_limits<float>::infinity()};
  return {1.0f / sum, top + std::log(sum)};
}

AttentionSetting take_attention(const Operands& o, bool grad, int threads, Scratch& scratch) {
  const tensor::Shape& q = o.ins[AttentionIn::kQ].shape;
  return take_attention(o, q.size("batch"), q.size("seq"), grad, threads, scratch);
}

AttentionSetting take_attention(const Operands& o, int64_t batch, int64_t seq, bool grad, int threads,
                                Scratch& scratch) {
  const tensor::Shape &q = o.ins[AttentionIn::kQ].shape, &k = o.ins[AttentionIn::kK].shape;
  AttentionSetting s = {};
  s.batch = batch, s.seq = seq, s.key_seq = k.size("key_seq");
  s.kv_heads = q.size("kv_heads"), s.group = q.size("group"), s.head_dim = q.size("head_dim");
  s.scale = static_cast<float>(o.attributes.number("scale"));
  s.softcap = static_cast<float>(o.attributes.number_or("softcap", 0.0));
  s.causal = o.attributes.integer("causal") != 0;
  s.window = o.attributes.integer_or("window", 0);
  s.dropout = o.attributes.number_or("dropout", 0.0);
  s.query_place = scratch.take<int32_t>(s.seq);
  s.key_place = scratch.take<int32_t>(s.key_seq);
  s.batch_place = scratch.take<int32_t>(s.batch);
  s.kv_head_place = scratch.take<int32_t>(s.kv_heads);
  s.group_place = scratch.take<int32_t>(s.group);
  s.key_tiles = scratch.take<KeyTile>(s.num_key_tiles());
  const bool documents = o.ins.has(AttentionIn::kKeyStarts);
  if (documents) s.start_ranges = scratch.take<StartRange>(s.batch * s.num_key_tiles());
  if (o.ins.has(AttentionIn::kSinks)) s.sinks = scratch.take<float>(s.kv_heads * s.group);
  if (grad && s.key_blocks() > 1) {
    // Twice as many blocks as threads, for load balance.
    s.heads_at_once = std::min((2 * threads + s.key_blocks() - 1) / s.key_blocks(), s.heads());
    s.dq_parts =
        scratch.take<float>(s.heads_at_once * s.key_blocks() * s.query_tiles() * kTileQueries * padded(s.head_dim));
  }
  const bool few = !grad && is_few(s);
  if (few) s.few_parts = scratch.take<float>(s.heads() * few_blocks(s) * few_part(s));
  const bool narrow = o.ins[AttentionIn::kQ].dtype == tensor::DType::bf16;
  s.threads = scratch.take<AttentionScratch>(threads);
  for (int i = 0; i < threads; ++i) {
    AttentionScratch t = few ? AttentionScratch{} : take_thread(s, narrow, grad, documents, scratch);
    if (few) take_queries(t, documents, scratch), t.few = scratch.take<float>(padded(s.head_dim) + kFewKeys);
    if (s.threads) s.threads[i] = t;
  }
  return s;
}

void fill_keys(const KernelCall& call, AttentionSetting& s) {
  fill_places(call.index("key_seq"), s.key_place);
  fill_places(call.index("kv_heads"), s.kv_head_place);
  fill_places(call.index("group"), s.group_place);
  s.whole_keys = call.index("key_seq").whole();
  for (int64_t t = 0; t < s.num_key_tiles(); ++t) {
    KeyTile tile{INT32_MAX, -1, false};
    for (int64_t i = t * kTileKeys; i < std::min(s.key_seq, (t + 1) * kTileKeys); ++i) {
      const int32_t place = s.key_place[i];
      tile.pads = tile.pads || place < 0;
      if (place >= 0) tile.low = std::min(tile.low, place), tile.high = std::max(tile.high, place);
    }
    s.key_tiles[t] = tile;
  }
}

AttentionSetting attention_setting(const KernelCall& call, bool grad) {
  Scratch scratch(call.workspace);
  AttentionSetting s =
      take_attention({Types(call.ins), Types(call.outs), call.attributes}, grad, call.team.size(), scratch);
  s.starts = reinterpret_cast<const int32_t*>(call.ins[AttentionIn::kStarts].data);  // or null
  s.key_starts = reinterpret_cast<const int32_t*>(call.ins[AttentionIn::kKeyStarts].data);
  base::require(!s.key_starts || s.starts, "attention", "key_starts without starts");
  fill_places(call.index("seq"), s.query_place);
  fill_places(call.index("batch"), s.batch_place);
  fill_keys(call, s);
  if (s.dropout > 0) {
    s.random_key = random_key(call.numbers.seed, call.attributes.text("key"));
    s.random_step = static_cast<uint64_t>(call.numbers.step);
    s.whole_seq = call.index("seq").whole();
    s.whole_kv_heads = call.index("kv_heads").whole();
    s.whole_group = call.index("group").whole();
    for (int64_t b = 0; b < s.batch; ++b)
      if (s.batch_place[b] >= 0) s.batch_place[b] += static_cast<int32_t>(call.numbers.batch_offset);
  }
  if (s.key_starts) fill_start_ranges(s);
  if (std::find(s.key_place, s.key_place + s.key_seq, 0) == s.key_place + s.key_seq) {
    s.sinks = nullptr;
  } else if (s.sinks) {
    const tensor::View& given = call.ins[AttentionIn::kSinks];
    widen(given.dtype(), given.data, s.sinks, given.elements());
  }
  return s;
}

}  // namespace kintsugi::kernels::cpu
