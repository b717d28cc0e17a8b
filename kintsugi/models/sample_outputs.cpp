#include "kintsugi/models/sample_outputs.h"

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::models {

Graphs build_outputs(const config::Settings& s, int64_t batch, int64_t sequence) {
  Graphs graphs;
  graphs.states = std::make_unique<graph::StateTable>();
  Graph g("evaluate", ops::operations(), *graphs.states);
  const Pass pass = {.purpose = Purpose::evaluate, .batch = batch, .sequence = sequence, .lora = &s.lora};
  Builder b(g, *graphs.states, s.model, pass, tensor::dtype_from(s.train.dtype));
  const Trunk trunk = family(s.model.family).build(b);
  const ValueId outputs = trunk.classes == graph::kNone ? trunk.numbers : trunk.classes;
  if (outputs == graph::kNone)
    throw base::UserError("model", "a {} model with the objective \"{}\" has no classes of samples", s.model.family,
                          s.model.objective);
  g.make("output", {outputs}, {}, {{"name", std::string(kOutputs)}});
  graphs.evaluate = std::move(g);
  return graphs;
}

}  // namespace kintsugi::models
