// Generation of many texts concurrently: rows of a batch belong to different texts, each at its own position. `text`
// [batch] is the text of each row, whose caches are [text key_seq ...]; `at` [batch] is the position of the row's first
// token, which the others follow. A row with -1 in either is padding.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// cache [text key_seq kv_heads head_dim], x [batch seq kv_heads head_dim] -> the cache with the rows of x in place.
// Every rank of a split batch needs all rows, since the caches are whole there.
OpRow cache_write_at() {
  return {.kind = "cache_write_at",
          .ins = {"cache", "x", "text", "at"},
          .outs = {"y"},
          .infer = like_first,
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"text", "key_seq", "batch", "seq"},
          .keeps_zero = true,
          .in_place = {{"y", "cache"}},
          .must_share = true};
}

// q [batch seq kv_heads group head_dim], k, v [text key_seq kv_heads head_dim], sinks [kv_heads group] -> as q
OpRow attention_at() {
  return {.kind = "attention_at",
          .ins = {"q", "k", "v", "text", "at", optional("sinks")},
          .outs = {"o"},
          .family = "attention",
          .infer = like_first,
          .flops =
              [](Types ins, Types, const Attributes&) {
                return 2.0 * static_cast<double>(ins["q"].shape.elements() * ins["k"].shape.size("key_seq"));
              },
          .whole = {"text", "key_seq", "seq", "head_dim"},
          .keeps_zero = true};
}

OpRow rotary_at() {
  return {.kind = "rotary_at",
          .ins = {"x", "at"},
          .outs = {"y"},
          .family = "rotary",
          .infer = like_first,
          .flops = per_element<3>,
          .whole = {"seq", "head_dim"},
          .keeps_zero = true,
          .in_place = {{"y", "x"}}};
}

// table [position embed], at [batch] -> [batch seq embed]. The attribute "length" is seq's size.
OpRow position_at() {
  return {
      .kind = "position_at",
      .ins = {"table", "at"},
      .outs = {"y"},
      .family = "position",
      .infer = [](Types ins, const Attributes& a) -> OutTypes {
        return {{Shape{{"batch", ins["at"].shape.size("batch")}, {"seq", a.integer("length")}, ins["table"].shape[1]},
                 ins["table"].dtype}};
      },
      .flops = [](Types, Types, const Attributes&) { return 0.0; },
      .whole = {"position", "seq"},
      .keeps_zero = true};
}

// x [batch seq embed], rows [row] -> [row embed]: the batch row given by each entry, at its last position; -1: zeros
OpRow take_rows() {
  return {.kind = "take_rows",
          .ins = {"x", "rows"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{Shape{{"row", ins["rows"].shape.size("row")}, ins["x"].shape[2]}, ins["x"].dtype}};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"batch", "seq", "row"},
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
