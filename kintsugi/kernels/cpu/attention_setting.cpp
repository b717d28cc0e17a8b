#include "kintsugi/kernels/cpu/attention_setting.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::kernels::cpu {
namespace {

AttentionScratch take_thread(const AttentionSetting& s, bool grad, bool whole_heads, bool documents, Scratch& scratch) {
  const int64_t wide = padded(s.head_dim);
  AttentionScratch t = {};
  t.q_t = scratch.take<float>(s.head_dim * kTileQueries);
  t.score_t = scratch.take<float>(kTileKeys * kTileQueries);
  t.rows = scratch.take<float>(kTileQueries * wide);
  t.keys = scratch.take<float>(kTileKeys * wide);
  t.values = scratch.take<float>(kTileKeys * wide);
  t.top = scratch.take<float>(kTileQueries);
  t.sum = scratch.take<float>(kTileQueries);
  t.factor = scratch.take<float>(kTileQueries);
  t.start = scratch.take<int32_t>(kTileQueries);
  t.last = scratch.take<int32_t>(kTileQueries);
  t.block_low = scratch.take<uint32_t>(kTileQueries);
  t.block_high = scratch.take<uint32_t>(kTileQueries);
  t.word = scratch.take<uint32_t>(kTileQueries);
  if (grad) {
    t.do_t = scratch.take<float>(s.head_dim * kTileQueries);
    t.dscore_t = scratch.take<float>(kTileKeys * kTileQueries);
    t.drows = scratch.take<float>(kTileQueries * wide);
    t.grad = scratch.take<float>(kTileQueries * wide);
  }
  if (documents) t.document = scratch.take<int32_t>(kTileQueries);
  if (whole_heads) {
    t.dk = scratch.take<float>(s.key_seq * wide);
    t.dv = scratch.take<float>(s.key_seq * wide);
  }
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

AttentionSetting take_attention(const Operands& o, bool grad, bool whole_heads, int threads, Scratch& scratch) {
  const tensor::Shape &q = o.ins[AttentionIn::kQ].shape, &k = o.ins[AttentionIn::kK].shape;
  AttentionSetting s = {};
  s.batch = q.size("batch"), s.seq = q.size("seq"), s.key_seq = k.size("key_seq");
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
  s.threads = scratch.take<AttentionScratch>(threads);
  for (int i = 0; i < threads; ++i) {
    const AttentionScratch t = take_thread(s, grad, whole_heads, documents, scratch);
    if (s.threads) s.threads[i] = t;
  }
  return s;
}

AttentionSetting attention_setting(const KernelCall& call, bool grad, bool whole_heads) {
  Scratch scratch(call.workspace);
  AttentionSetting s = take_attention({Types(call.ins), Types(call.outs), call.attributes}, grad, whole_heads,
                                      call.team.size(), scratch);
  s.starts = reinterpret_cast<const int32_t*>(call.ins[AttentionIn::kStarts].data);  // or null
  s.key_starts = reinterpret_cast<const int32_t*>(call.ins[AttentionIn::kKeyStarts].data);
  base::require(!s.key_starts || s.starts, "attention", "key_starts without starts");
  fill_places(call.index("seq"), s.query_place);
  fill_places(call.index("key_seq"), s.key_place);
  fill_places(call.index("batch"), s.batch_place);
  fill_places(call.index("kv_heads"), s.kv_head_place);
  fill_places(call.index("group"), s.group_place);
  s.whole_keys = call.index("key_seq").whole();
  if (s.dropout > 0) {
    s.random_key = random_key(call.numbers.seed, call.attributes.text("key"));
    s.random_step = static_cast<uint64_t>(call.numbers.step);
    s.whole_seq = call.index("seq").whole();
    s.whole_kv_heads = call.index("kv_heads").whole();
    s.whole_group = call.index("group").whole();
    for (int64_t b = 0; b < s.batch; ++b)
      if (s.batch_place[b] >= 0) s.batch_place[b] += static_cast<int32_t>(call.numbers.batch_offset);
  }
  for (int64_t t = 0; t < s.num_key_tiles(); ++t) {
    KeyTile tile{INT32_MAX, -1, false};
    for (int64_t i = t * kTileKeys; i < std::min(s.key_seq, (t + 1) * kTileKeys); ++i) {
      const int32_t place = s.key_place[i];
      tile.pads = tile.pads || place < 0;
      if (place >= 0) tile.low = std::min(tile.low, place), tile.high = std::max(tile.high, place);
    }
    s.key_tiles[t] = tile;
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
