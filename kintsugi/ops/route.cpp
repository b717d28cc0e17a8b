// The router of a mixture of experts: the experts of a token, and their weights. Shazeer et al. 2017, "Outrageously
// large neural networks", section 2.1; the sigmoid with a bias is that of DeepSeek-V3 (2024, section 2.1.2). Ties go to
// the lowest expert.
// logits: [batch seq candidate], bias: [candidate], weights, experts: [batch seq choice]
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

OpRow route() {
  return {
      .kind = "route",
      .ins = {"logits", optional("bias")},
      .outs = {"weights", "experts"},
      .infer = [](Types ins, const Attributes& a) -> OutTypes {
        std::vector<tensor::Dim> dims = without(ins["logits"].shape, "candidate").dims();
        dims.push_back({"choice", a.integer("top_k")});
        return {{Shape(dims), ins["logits"].dtype}, {Shape(dims), DType::i32}};
      },
      .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
        if (dy[0] == kNone) return {kNone, kNone};
        const ValueId logits = op.in("logits");
        return {g.make("route_grad", {logits, op.out("experts"), dy[0]}, {g.type(logits)}, op.attributes)[0], kNone};
      },
      .flops = [](Types ins, Types,
                  const Attributes& a) { return static_cast<double>(4 + a.integer("top_k")) * elements(ins); },
      .whole = {"candidate", "choice"},
      .keeps_zero = true};
}

OpRow route_grad() {
  return {.kind = "route_grad",
          .ins = {"logits", "experts", "dweights"},
          .outs = {"dlogits"},
          .family = "route",
          .flops = per_element<8>,
          .whole = {"candidate", "choice"},
          .keeps_zero = true};
}

// The loss of one sample of T positions is T times that of DeepSeek-V3 (2024, equations 17 to 20), or its number of
// labels times that if there are labels: a mean over counted tokens is a mean over samples, weighted by their labels.
// With a load, the shares of tokens are those of the load (Qiu et al. 2025, "Demons in the detail", equation 4).
// logits: [batch seq candidate], counts: [batch expert], load: [candidate] fp64, labels: [batch label_seq] -> loss []
OpRow balance_loss() {
  return {.kind = "balance_loss",
          .ins = {"logits", "counts", optional("load"), optional("labels")},
          .outs = {"loss"},
          .infer = [](Types, const Attributes&) -> OutTypes { return {scalar()}; },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId logits = op.in("logits");
            const std::vector<ValueId> ins = {logits, op.in("counts"), dy[0], op.in("load"), op.in("labels")};
            // Counts and a load are constants, as published.
            return {g.make("balance_loss_grad", ins, {g.type(logits)}, op.attributes)[0], kNone, kNone, kNone};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 6.0 * elements(ins); },
          .whole = {"candidate", "expert", "label_seq"},
          .keeps_zero = true,
          .accumulates = {"loss"}};
}

OpRow balance_loss_grad() {
  return {.kind = "balance_loss_grad",
          .ins = {"logits", "counts", "dloss", optional("load"), optional("labels")},
          .outs = {"dlogits"},
          .family = "balance_loss",
          .flops = per_element<8>,
          .whole = {"candidate", "expert", "label_seq"},
          .keeps_zero = true};
}

// The square of the log of the sum of exponentials of each token's logits (Zoph et al. 2022, "ST-MoE", equation 5),
// summed over tokens; those of a sample are multiplied by the share of its positions that have labels.
// logits: [batch seq candidate], labels: [batch label_seq] -> loss []
OpRow router_z_loss() {
  return {.kind = "router_z_loss",
          .ins = {"logits", optional("labels")},
          .outs = {"loss"},
          .infer = [](Types, const Attributes&) -> OutTypes { return {scalar()}; },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> dy) -> std::vector<ValueId> {
            const ValueId logits = op.in("logits");
            return {g.make("router_z_loss_grad", {logits, dy[0], op.in("labels")}, {g.type(logits)}, op.attributes)[0],
                    kNone};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 4.0 * elements(ins); },
          .whole = {"candidate", "label_seq"},
          .keeps_zero = true,
          .accumulates = {"loss"}};
}

OpRow router_z_loss_grad() {
  return {.kind = "router_z_loss_grad",
          .ins = {"logits", "dloss", optional("labels")},
          .outs = {"dlogits"},
          .family = "router_z_loss",
          .flops = per_element<6>,
          .whole = {"candidate", "label_seq"},
          .keeps_zero = true};
}

// counts [batch expert] -> the tokens of each expert, load [candidate] in fp64
OpRow expert_load() {
  return {.kind = "expert_load",
          .ins = {"counts"},
          .outs = {"load"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{Shape{{"candidate", ins["counts"].shape.size("expert")}}, DType::f64}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .whole = {"candidate", "expert"},
          .keeps_zero = true,
          .accumulates = {"load"}};
}

// The load of the busiest expert, as a multiple of the mean.
OpRow expert_balance() {
  return {.kind = "expert_balance",
          .ins = {"load"},
          .outs = {"most"},
          .infer = [](Types, const Attributes&) -> OutTypes { return {scalar()}; },
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .whole = {"candidate"}};
}

// Wang et al. 2024, "Auxiliary-loss-free load balancing strategy for mixture-of-experts", algorithm 1.
// bias: [candidate] (T), load: [candidate], finite: []
OpRow balance_bias() {
  return {.kind = "balance_bias",
          .ins = {"bias", "load", "finite"},
          .outs = {"bias"},
          .infer = like_first,
          .flops = per_element<3>,
          .whole = {"candidate"},
          .in_place = {{"bias", "bias"}}};
}

}  // namespace kintsugi::ops
