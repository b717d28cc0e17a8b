// Losses of samples: classes, numbers, and fields.
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {

// logits [batch spatial... class], labels [batch spatial...], weights [batch] -> the weighted sum of cross-entropies
// and the sum of weights, []. The attribute "smoothing" is the share of a label that is distributed over all classes
// equally (Szegedy et al. 2016, section 7).
OpRow class_loss() {
  return {.kind = "class_loss",
          .ins = {"logits", "labels", "weights"},
          .outs = {"loss", "count"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar()};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            return {g.make("class_loss_grad", {op.in("logits"), op.in("labels"), op.in("weights"), douts[0]},
                           {g.type(op.in("logits"))}, op.attributes)[0],
                    kNone, kNone};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 4.0 * elements(ins); },
          .whole = {"class"},
          .keeps_zero = true,
          .accumulates = {"loss", "count"}};
}

OpRow class_loss_grad() {
  return {.kind = "class_loss_grad",
          .ins = {"logits", "labels", "weights", "dloss"},
          .outs = {"dlogits"},
          .family = "class_loss",
          .whole = {"class"},
          .keeps_zero = true};
}

// logits [batch spatial... class], labels [batch spatial...] -> the number of samples, or pixels, whose label has the
// largest logit, and one of the five largest, []
OpRow class_hits() {
  return {.kind = "class_hits",
          .ins = {"logits", "labels"},
          .outs = {"top1", "top5"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar()};
          },
          .flops = [](Types ins, Types, const Attributes&) { return elements(ins); },
          .whole = {"class"},
          .keeps_zero = true,
          .accumulates = {"top1", "top5"}};
}

// y, targets [batch spatial... target] -> the sum of squared differences and their number, []
OpRow squared_error() {
  return {
      .kind = "squared_error",
      .ins = {"y", "targets"},
      .outs = {"loss", "count"},
      .infer = [](Types, const Attributes&) -> OutTypes {
        return {scalar(), scalar()};
      },
      .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
        return {g.make("squared_error_grad", {op.in("y"), op.in("targets"), douts[0]}, {g.type(op.in("y"))})[0], kNone};
      },
      .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
      .keeps_zero = true,
      .accumulates = {"loss", "count"}};
}

OpRow squared_error_grad() {
  return {.kind = "squared_error_grad",
          .ins = {"y", "targets", "dloss"},
          .outs = {"dy"},
          .family = "squared_error",
          .keeps_zero = true};
}

// y, targets [batch spatial... target] -> per index of the dim of the outputs, batch or target, the sum of squared
// differences and that of squared targets, fp64
OpRow field_errors() {
  return {.kind = "field_errors",
          .ins = {"y", "targets"},
          .outs = {"errors", "norms"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            const tensor::Type sums = {{ins["y"].shape[0]}, DType::f64};
            return {sums, sums};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            const ValueId y = op.in("y");
            return {g.make("field_errors_grad", {y, op.in("targets"), douts[0]}, {g.type(y)})[0], kNone};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 5.0 * elements(ins); },
          .keeps_zero = true};
}

OpRow field_errors_grad() {
  return {.kind = "field_errors_grad",
          .ins = {"y", "targets", "derrors"},
          .outs = {"dy"},
          .family = "field_errors",
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .keeps_zero = true};
}

// errors, norms [batch] fp64 -> the sum over samples of sqrt(errors / norms), and the number of samples, []; those
// without a norm are not counted.
OpRow relative_error() {
  return {.kind = "relative_error",
          .ins = {"errors", "norms"},
          .outs = {"loss", "count"},
          .infer = [](Types, const Attributes&) -> OutTypes {
            return {scalar(), scalar()};
          },
          .grad = [](Graph& g, const Op& op, std::span<const ValueId> douts) -> std::vector<ValueId> {
            const ValueId errors = op.in("errors");
            return {g.make("relative_error_grad", {errors, op.in("norms"), douts[0]}, {g.type(errors)})[0], kNone};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .keeps_zero = true,
          .accumulates = {"loss", "count"}};
}

OpRow relative_error_grad() {
  return {.kind = "relative_error_grad",
          .ins = {"errors", "norms", "dloss"},
          .outs = {"derrors"},
          .family = "relative_error",
          .flops = [](Types ins, Types, const Attributes&) { return 4.0 * elements(ins); },
          .keeps_zero = true};
}

}  // namespace kintsugi::ops
