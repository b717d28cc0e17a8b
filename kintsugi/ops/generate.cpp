// Operations of generation: keys and values that persist between steps, and selection of the position whose logits are
// needed.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// cache [batch key_seq kv_heads head_dim], x [batch seq kv_heads head_dim] -> the cache with x in place
OpRow cache_write() {
  return {.kind = "cache_write",
          .ins = {"cache", "x"},
          .outs = {"y"},
          .infer = like_first,
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"key_seq", "seq"},
          .keeps_zero = true,
          .in_place = {{"y", "cache"}},
          .must_share = true};
}

// x [batch seq embed] -> [batch embed], at the last position of the prompt
OpRow take() {
  return {.kind = "take",
          .ins = {"x"},
          .outs = {"y"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{without(ins[0].shape, "seq"), ins[0].dtype}};
          },
          .flops = [](Types, Types, const Attributes&) { return 0.0; },
          .whole = {"seq"},
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
