// Outputs of attention over two disjoint sets of keys -> over both (Rabe, Staats 2021, section 2). o: [batch seq
// kv_heads group head_dim], lse: [batch seq kv_heads group]; o_a, lse_a, o_b, lse_b -> o, lse
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow attention_join() {
  return {.kind = "attention_join",
          .infer = [](Types ins, const Attributes&) -> std::vector<Type> {
            return {ins[0], ins[1]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .whole = {"head_dim"},
          .keeps_zero = true,
          .in_place = {{0, 0}, {1, 1}}};
}

}  // namespace kintsugi::ops
