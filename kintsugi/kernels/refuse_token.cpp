#include "kintsugi/kernels/refuse_token.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {

void require_slots(const RefusedTokens& refused) {
  if (refused.tokens == 0) return;
  throw base::UserError("experts",
                        "layer {}: {} tokens of a sample use expert {}, which has {} slot{} for each sample; raise "
                        "train.expert_bound, leave it out for as many slots as can be needed, or set "
                        "train.expert_overflow = \"drop\"",
                        refused.layer, refused.tokens, refused.expert, refused.capacity,
                        refused.capacity == 1 ? "" : "s");
}

void refuse_token(const KernelCall& call, int64_t sample, int64_t expert) {
  if (call.attributes.integer("drop") != 0) return;
  const tensor::View& experts = call.ins[0];
  const int64_t of_sample = experts.elements() / experts.shape()[0].size;
  const auto mine =
      experts.as<int32_t>().subspan(static_cast<size_t>(sample * of_sample), static_cast<size_t>(of_sample));
  require_slots({.tokens = std::ranges::count(mine, static_cast<int32_t>(expert)),
                 .layer = call.attributes.integer("layer"),
                 .expert = expert,
                 .capacity = call.attributes.integer("capacity")});
}

}  // namespace kintsugi::kernels
