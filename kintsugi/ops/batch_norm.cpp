// Ioffe, Szegedy 2015. The statistics of a batch are a separate operation, whose sums over split samples and positions
// are partial sums of the whole batch. x: [batch spatial... channels]; gamma, beta, mean, variance: [channels];
// statistics: [moment channels], the sum of x and of its squares. The attribute "count" is the number of elements per
// channel that they sum.
//
// In groups of consecutive samples (Hoffer et al. 2017, section 4), statistics, dgamma and dbeta have a further dim:
// [batch_group moment channels], [batch_group channels]. It is split like batch, by whole groups.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::ops {
namespace {

constexpr std::string_view kMoment = "moment", kGroup = "batch_group", kGroupMoment = "group_moment";

const tensor::Dim& channels(const Shape& x) {
  return x[x.rank() - 1];
}

// Includes the dependence of the statistics: with xhat = (x - mean) / deviation, dx = gamma / deviation * (dy -
// mean(dy) - xhat * mean(dy * xhat)).
std::vector<ValueId> grad(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), gamma = op.in("gamma"), beta = op.in("beta"), statistics = op.in("statistics");
  base::require(statistics != kNone, "batch_norm", "no gradient through running statistics");
  const Type dgamma = g.gradient_type(gamma), dbeta = g.gradient_type(beta);
  const Shape of = g.shape(statistics);
  const bool grouped = of.has(kGroup);
  const auto each = [&](const Type& all) -> Type {
    return grouped ? Type{{of[0], channels(all.shape)}, all.dtype} : all;
  };
  const std::vector<ValueId> sums =
      g.make("batch_norm_sums", {x, statistics, dy[0]}, {each(dgamma), each(dbeta)}, op.attributes);
  const ValueId dx =
      g.make("batch_norm_grad", {x, gamma, statistics, sums[0], sums[1], dy[0]}, {g.type(x)}, op.attributes)[0];
  if (!grouped) return {dx, sums[0], sums[1], kNone, kNone, kNone, kNone};
  return {dx, g.sum_to(sums[0], dgamma), g.sum_to(sums[1], dbeta), kNone, kNone, kNone, kNone};
}

}  // namespace

// The attribute "samples" is the number of samples of a group; without it, statistics have no groups.
OpRow batch_statistics() {
  return {.kind = "batch_statistics",
          .ins = {"x"},
          .outs = {"statistics"},
          .infer = [](Types ins, const Attributes& a) -> OutTypes {
            const Shape& x = ins["x"].shape;
            const tensor::Dim moment = {std::string(kMoment), 2};
            if (!a.has("samples")) return {{Shape{moment, channels(x)}, DType::f64}};
            const int64_t samples = a.integer("samples");
            base::require(samples > 0 && x[0].size % samples == 0, "batch_statistics", "{} samples in groups of {}",
                          x[0].size, samples);
            return {{Shape{{std::string(kGroup), x[0].size / samples}, moment, channels(x)}, DType::f64}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .whole = {kMoment},
          .keeps_zero = true,
          .alias = {{kGroup, tensor::kSamples}}};
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
      .alias = {{kGroup, tensor::kSamples}},
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
          .alias = {{kGroup, tensor::kSamples}},
          .accumulates = {"dgamma", "dbeta"}};
}

OpRow batch_norm_grad() {
  return {.kind = "batch_norm_grad",
          .ins = {"x", "gamma", "statistics", "dgamma", "dbeta", "dy"},
          .outs = {"dx"},
          .family = "batch_norm",
          .flops = per_element<6>,
          .whole = {kMoment},
          .alias = {{kGroup, tensor::kSamples}},
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

// moments: [group_moment channels], sums over groups of their mean and unbiased variance, and the number of groups.
OpRow batch_moments() {
  return {.kind = "batch_moments",
          .ins = {"statistics"},
          .outs = {"moments"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {{Shape{{std::string(kGroupMoment), 3}, channels(ins["statistics"].shape)}, DType::f64}};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 4.0 * elements(ins); },
          .whole = {kMoment, kGroupMoment}};
}

// mean, variance: the new running statistics; the attribute "momentum" is the weight of the mean over groups.
OpRow running_moments() {
  return {.kind = "running_moments",
          .ins = {"mean", "variance", "moments"},
          .outs = {"mean", "variance"},
          .infer = [](Types ins, const Attributes&) -> OutTypes {
            return {ins["mean"], ins["variance"]};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 8.0 * elements(ins); },
          .whole = {kGroupMoment},
          .keeps_zero = true,
          .in_place = {{"mean", "mean"}, {"variance", "variance"}}};
}

}  // namespace kintsugi::ops
