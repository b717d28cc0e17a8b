// Operations on rows of different texts, each at its own position (ops/generate_at.cpp).
#include "kintsugi/kernels/cpu/attention_few.h"
#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/rows.h"

namespace kintsugi::kernels::cpu {
namespace {

// Rows of a single call of attention: `batch` samples of `seq` queries from row `begin`.
struct RowGroup {
  int64_t begin, batch, seq;
};

// Rows of one token each: adjacent rows of a text form one sample, so that a prompt uses tiles; between them, rows of
// different texts are samples of one call.
RowGroup next_group(const tensor::DimIndex& batch, std::span<const int32_t> text, std::span<const int32_t> at,
                    int64_t begin) {
  const int64_t rows = std::ssize(text);
  const auto follows = [&](int64_t row) {  // the previous row
    const auto i = static_cast<size_t>(row);
    return row < rows && text[i] >= 0 && at[i - 1] >= 0 && text[i] == text[i - 1] && at[i] == at[i - 1] + 1 &&
           batch[row] >= 0;
  };
  int64_t end = begin + 1;
  if (follows(end)) {
    while (follows(end)) ++end;
    return {begin, 1, end - begin};
  }
  while (end < rows && !follows(end) && !follows(end + 1)) ++end;
  return {begin, end - begin, 1};
}

}  // namespace

// cache, y: [text key_seq kv_heads head_dim], x: [batch seq kv_heads head_dim], text, at: [batch]
void cache_write_at(const KernelCall& call) {
  using In = CacheWriteAtIn;
  const tensor::View &cache = call.ins[In::kCache], &x = call.ins[In::kX], &y = call.outs[0];
  const tensor::DimIndex& index = call.index("key_seq");
  const auto text = call.ins[In::kText].as<int32_t>(), at = call.ins[In::kAt].as<int32_t>();
  if (y.data != cache.data) std::memcpy(y.data, cache.data, static_cast<size_t>(cache.type.bytes()));
  const int64_t bytes = x.size("kv_heads") * x.size("head_dim") * tensor::size_of(x.dtype()), seq = x.size("seq");
  for (int64_t b = 0; b < x.size("batch"); ++b) {
    const auto i = static_cast<size_t>(b);
    base::require(text[i] < cache.size("text"), "cache_write_at", "text {} of {}", text[i], cache.size("text"));
    if (text[i] < 0 || at[i] < 0) continue;
    for (int64_t s = 0; s < seq; ++s) {
      const int64_t place = local_of(index, at[i] + s);
      if (place >= 0) copy_row(y.data + (text[i] * cache.size("key_seq") + place) * bytes, x.data, b * seq + s, bytes);
    }
  }
}

int64_t attention_at_workspace(const KernelShapes& shapes) {
  using In = AttentionAtIn;
  // As operands of attention.
  const tensor::Type* const ins[] = {shapes.ins[In::kQ],    shapes.ins[In::kK], shapes.ins[In::kV], nullptr, nullptr,
                                     shapes.ins[In::kSinks]};
  const Operands o = {Types(ins), Types(shapes.outs), shapes.attributes};
  const tensor::Shape& q = shapes.ins[In::kQ]->shape;
  const int64_t batch = q.size("batch"), seq = q.size("seq");
  int64_t most = 0;
  for (const RowGroup& g : {RowGroup{0, batch, seq}, RowGroup{0, 1, seq == 1 ? batch : seq}}) {
    Scratch scratch;
    take_attention(o, g.batch, g.seq, false, shapes.threads, scratch);
    most = std::max(most, scratch.bytes());
  }
  Scratch all;
  all.take<float>(q.elements() / q.size("head_dim"));
  return all.bytes() + most;
}

// q, o: [batch seq kv_heads group head_dim], k, v: [text key_seq kv_heads head_dim], text, at: [batch]
void attention_at(const KernelCall& call) {
  using In = AttentionAtIn;
  const tensor::View &q = call.ins[In::kQ], &o = call.outs[0];
  const int64_t batch = q.size("batch"), seq = q.size("seq"), of_row = q.elements() / batch,
                bytes = of_row * tensor::size_of(q.dtype());
  const auto text = call.ins[In::kText].as<int32_t>(), at = call.ins[In::kAt].as<int32_t>();
  const tensor::DimIndex& index = call.index("batch");
  Scratch scratch(call.workspace);
  float* const lse = scratch.take<float>(q.elements() / q.size("head_dim"));  // not an output
  const std::span<std::byte> rest = call.workspace.subspan(static_cast<size_t>(scratch.bytes()));
  for (int64_t begin = 0; begin < batch;) {
    const RowGroup g = seq == 1 ? next_group(index, text, at, begin) : RowGroup{0, batch, seq};
    // attend() uses addresses and dtypes; sizes are those of the setting.
    const tensor::View ins[] = {
        {q.data + begin * bytes, q.type}, call.ins[In::kK], call.ins[In::kV], {}, {}, call.ins[In::kSinks]};
    const tensor::View outs[] = {{o.data + begin * bytes, o.type}, {reinterpret_cast<std::byte*>(lse), {}}};
    Scratch own(rest);
    AttentionSetting s =
        take_attention({Types(ins), Types(call.outs), call.attributes}, g.batch, g.seq, false, call.team.size(), own);
    s.text = text.data() + begin, s.at = at.data() + begin;
    for (int64_t i = 0; i < g.seq; ++i) s.query_place[i] = static_cast<int32_t>(i);
    for (int64_t i = 0; i < g.batch; ++i) s.batch_place[i] = index[begin + i] < 0 ? -1 : 0;
    fill_keys(call, s);
    if (s.sinks)
      widen(call.ins[In::kSinks].dtype(), call.ins[In::kSinks].data, s.sinks, call.ins[In::kSinks].elements());
    attend({.ins = ins,
            .outs = outs,
            .attributes = call.attributes,
            .indices = call.indices,
            .accumulate = 0,
            .workspace = rest,
            .numbers = call.numbers,
            .team = call.team},
           s);
    begin += seq == 1 ? g.batch * g.seq : batch;
  }
}

// table: [position embed], at: [batch], y: [batch seq embed]
void position_at(const KernelCall& call) {
  const tensor::View &table = call.ins[0], &y = call.outs[0];
  const tensor::DimIndex &index = call.index("position"), &batch = call.index("batch");
  const auto at = call.ins[1].as<int32_t>();
  const int64_t bytes = table.size("embed") * tensor::size_of(table.dtype()), seq = y.size("seq");
  for (int64_t i = 0; i < y.size("batch") * seq; ++i) {
    const int64_t first = batch[i / seq] < 0 ? -1 : at[static_cast<size_t>(i / seq)];
    copy_row(y.data + i * bytes, table.data, first < 0 ? -1 : local_of(index, first + i % seq), bytes);
  }
}

// x: [batch seq embed], rows: [row], y: [row embed]
void take_rows(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &y = call.outs[0];
  const auto rows = call.ins[1].as<int32_t>();
  const int64_t bytes = x.size("embed") * tensor::size_of(x.dtype()), seq = x.size("seq");
  for (size_t i = 0; i < rows.size(); ++i) {
    base::require(rows[i] < x.size("batch"), "take_rows", "row {} of {}", rows[i], x.size("batch"));
    copy_row(y.data + static_cast<int64_t>(i) * bytes, x.data, rows[i] < 0 ? -1 : rows[i] * seq + seq - 1, bytes);
  }
}

}  // namespace kintsugi::kernels::cpu
