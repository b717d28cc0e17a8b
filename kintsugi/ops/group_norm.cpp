// Wu, He 2018. The statistics of a sample and a group of adjacent channels are a separate operation, whose sums over
// split positions and channels are partial sums of the whole. x: [batch spatial... channels]; gamma, beta: [channels];
// statistics: [batch moment norm_group], the sums of x and of its squares; sums: the same shape, of dy * gamma and of
// dy * gamma * xhat. Attributes: "channels", of the whole x; "groups"; "count", the elements of a group of a sample.
#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::ops {
namespace {

constexpr std::string_view kGroupMoment = "moment", kNormGroup = "norm_group";

Type statistics_of(const Shape& x, const Attributes& attributes) {
  return {Shape{x[0], {std::string(kGroupMoment), 2}, {std::string(kNormGroup), attributes.integer("groups")}},
          DType::f64};
}

std::vector<ValueId> group_norm_gradient(Graph& g, const Op& op, std::span<const ValueId> dy) {
  const ValueId x = op.in("x"), gamma = op.in("gamma"), beta = op.in("beta"), statistics = op.in("statistics");
  const std::vector<ValueId> made =
      g.make("group_norm_sums", {x, gamma, statistics, dy[0]},
             {g.gradient_type(gamma), g.gradient_type(beta), g.type(statistics)}, op.attributes);
  const ValueId dx = g.make("group_norm_grad", {x, gamma, statistics, made[2], dy[0]}, {g.type(x)}, op.attributes)[0];
  return {dx, made[0], made[1], kNone};
}

}  // namespace

OpRow group_statistics() {
  return {.kind = "group_statistics",
          .ins = {"x"},
          .outs = {"statistics"},
          .infer = [](Types ins, const Attributes& attributes) -> OutTypes {
            const Shape& x = ins["x"].shape;
            const int64_t groups = attributes.integer("groups"), channels = x[x.rank() - 1].size;
            if (groups < 1 || channels % groups != 0)
              throw base::InternalError("group_norm", "{} channels in {} groups", channels, groups);
            return {statistics_of(x, attributes)};
          },
          .flops = [](Types ins, Types, const Attributes&) { return 3.0 * elements(ins); },
          .whole = {kGroupMoment, kNormGroup},
          .keeps_zero = true};
}

OpRow group_norm() {
  return {.kind = "group_norm",
          .ins = {"x", "gamma", "beta", "statistics"},
          .outs = {"y"},
          .infer = like_first,
          .grad = group_norm_gradient,
          .flops = per_element<4>,
          .whole = {kGroupMoment, kNormGroup},
          .light = true};
}

OpRow group_norm_sums() {
  return {.kind = "group_norm_sums",
          .ins = {"x", "gamma", "statistics", "dy"},
          .outs = {"dgamma", "dbeta", "sums"},
          .family = "group_norm",
          .flops = [](Types ins, Types, const Attributes&) { return 8.0 * elements(ins); },
          .whole = {kGroupMoment, kNormGroup},
          .keeps_zero = true,
          .accumulates = {"dgamma", "dbeta"}};
}

OpRow group_norm_grad() {
  return {.kind = "group_norm_grad",
          .ins = {"x", "gamma", "statistics", "sums", "dy"},
          .outs = {"dx"},
          .family = "group_norm",
          .flops = per_element<8>,
          .whole = {kGroupMoment, kNormGroup},
          .in_place = {{"dx", "dy"}}};
}

}  // namespace kintsugi::ops
