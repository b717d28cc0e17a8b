// Merges outputs of attention over two disjoint sets of keys (Rabe, Staats 2021, section 2). o: [batch seq kv_heads
// group head_dim], lse: [batch seq kv_heads group]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow attention_join() {
  return {.kind = "attention_join",
          .ins = {"o_a", "lse_a", "o_b", "lse_b"},
          .outs = {"o", "lse"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["o_a"], ins["lse_a"]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .whole = {"head_dim"},
          .keeps_zero = true,
          .in_place = {{"o", "o_a"}, {"lse", "lse_a"}}};
}

}  // namespace kintsugi::ops
