#include "kintsugi/models/embedding.h"

#include "kintsugi/base/error.h"
#include "kintsugi/models/models.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::models {

Graphs build_embedding(const config::Settings& s, int64_t batch, int64_t sequence, int64_t blocks) {
  if (!reads_tokens(s.model)) throw base::UserError("embed", "a {} model does not read tokens", s.model.family);
  Graphs graphs;
  graphs.states = std::make_unique<graph::StateTable>();
  Graph g("evaluate", ops::operations(), *graphs.states);
  const Pass pass = {.purpose = Purpose::evaluate,
                     .batch = batch,
                     .sequence = sequence,
                     .documents = !s.model.causal,
                     .lora = &s.lora,
                     .blocks = blocks};
  config::Model model = s.model;
  model.objective = "next";  // omit the layers of other objectives
  Builder b(g, *graphs.states, model, pass, tensor::dtype_from(s.train.dtype));
  const Trunk trunk = family(model.family).build(b);
  g.make("output", {trunk.x}, {}, {{"name", std::string(kHidden)}});
  graphs.evaluate = std::move(g);
  return graphs;
}

}  // namespace kintsugi::models
