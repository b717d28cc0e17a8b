// Ioffe, Szegedy 2015. The statistics of a batch are a separate operation, whose sums over split samples and positions
// are partial sums of the whole batch. x: [samples spatial... channels]; gamma, beta, mean, variance: [channels];
// statistics: [moment channels], the sum of x and of its squares. The attribute "count" is the number of elements of
// the whole x per channel.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

constexpr std::string_view kMoment = "moment";

const tensor::Dim& channels(const Shape& x) {
  return x[x.rank() - 1];
}

// Includes the dependence of the statistics: with xhat = (x - mean) / deviation, dx = gamma / deviation * (dy -
// mean(dy) - xhat * mean(dy * xhat)).
std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), gamma = op.in("gamma"), beta = op.in("beta"), statistics = op.in("statistics");
  base::require(statistics != kNone, "batch_norm", "no gradient through running statistics");
  const std::vector<ValueId> sums =
      g.make("batch_norm_sums", {x, statistics, dy[0]}, {g.gradient_type(gamma), g.gradient_type(beta)}, op.attributes);
  const ValueId dx =
      g.make("batch_norm_grad", {x, gamma, statistics, sums[0], sums[1], dy[0]}, {g.type(x)}, op.attributes)[0];
  return {dx, sums[0], sums[1], kNone, kNone, kNone, kNone};
}

}  // namespace

OpRow batch_statistics() {
  return {.kind = "batch_statistics",
          .ins = {"x"},
          .outs = {"statistics"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{Shape{{std::string(kMoment), 2}, channels(ins["x"].shape)}, DType::f64}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .whole = {kMoment},
          .keeps_zero = true};
}

// y = (x - mean) / sqrt(variance + epsilon) * gamma + beta, with the statistics or a given mean and variance. A fusion
// may add `added`, a value like y, and apply an epilogue.
OpRow batch_norm() {
  return {
      .kind = "batch_norm",
      .ins = {"x", "gamma", "beta", optional("statistics"), optional("mean"), optional("variance"), optional("added")},
      .outs = {"y"},
      .infer = like_first,
      .grad = grad,
      .flops = per_element<4>,
      .whole = {kMoment},
      .light = true};
}

OpRow batch_norm_sums() {
  return {.kind = "batch_norm_sums",
          .ins = {"x", "statistics", "dy"},
          .outs = {"dgamma", "dbeta"},
          .family = "batch_norm",
          .flops = [](Types ins, Types, const Attributes&) { return 5.0 * elements(ins); },
          .whole = {kMoment},
          .keeps_zero = true,
          .accumulates = {"dgamma", "dbeta"}};
}

OpRow batch_norm_grad() {
  return {.kind = "batch_norm_grad",
          .ins = {"x", "gamma", "statistics", "dgamma", "dbeta", "dy"},
          .outs = {"dx"},
          .family = "batch_norm",
          .flops = per_element<6>,
          .whole = {kMoment},
          .in_place = {{"dx", "dy"}}};
}

// mean, variance: the new running statistics; the attribute "momentum" is the weight of the batch, with unbiased
// variance.
OpRow running_statistics() {
  return {.kind = "running_statistics",
          .ins = {"mean", "variance", "statistics"},
          .outs = {"mean", "variance"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["mean"], ins["variance"]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 10.0 * elements(ins); },
          .whole = {kMoment},
          .in_place = {{"mean", "mean"}, {"variance", "variance"}}};
}

}  // namespace kintsugi::ops
