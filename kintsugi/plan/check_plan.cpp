#include "kintsugi/plan/check_plan.h"

#include "kintsugi/plan/check_rules.h"
#include "kintsugi/plan/check_sizes.h"

namespace kintsugi::plan {

std::vector<tensor::Dim> dims_of(const config::Settings& settings) {
  const config::Model& m = settings.model;
  const config::Train& t = settings.train;
  std::vector<tensor::Dim> dims = {{"batch", t.micro_batch * settings.parallel.data},
                                   {"seq", t.sequence},
                                   {"key_seq", t.sequence},
                                   {"embed", m.embed},
                                   {"kv_heads", m.kv_heads},
                                   {"group", m.heads / m.kv_heads},
                                   {"head_dim", m.embed / m.heads},
                                   {"ffn", m.ffn},
                                   {"vocab", m.vocab}};
  if (m.family == "gpt") dims.push_back({"position", m.context});
  return dims;
}

void check_plan(const Plan& plan, const config::Settings& settings) {
  const std::vector<tensor::Dim> dims = dims_of(settings);
  check_rules(plan, dims);
  check_sizes(plan, dims);
}

}  // namespace kintsugi::plan
