#include "kintsugi/kernels/refuse_token.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {

void refuse_token(const KernelCall& call, int64_t sample, int64_t expert) {
  if (call.attributes.integer("drop") != 0) return;
  const tensor::View& experts = call.ins[0];
  const int64_t of_sample = experts.elements() / experts.shape()[0].size,
                capacity = call.attributes.integer("capacity");
  const auto mine =
      experts.as<int32_t>().subspan(static_cast<size_t>(sample * of_sample), static_cast<size_t>(of_sample));
  throw base::UserError("experts",
                        "layer {}: {} tokens of a sample use expert {}, which has {} slot{} for each sample; raise "
                        "train.expert_bound, leave it out for as many slots as can be needed, or set "
                        "train.expert_overflow = \"drop\"",
                        call.attributes.integer("layer"), std::ranges::count(mine, static_cast<int32_t>(expert)),
                        expert, capacity, capacity == 1 ? "" : "s");
}

}  // namespace kintsugi::kernels
