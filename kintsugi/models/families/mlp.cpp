// A multilayer perceptron on rows of numbers.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family mlp() {
  config::Model m;
  m.objective = "numbers";
  m.activation = "relu";
  m.positions = "none";
  m.tied = false;
  return {.config = {.name = "mlp",
                     .about = "multi-layer perceptron: numbers to numbers, or to a class",
                     .defaults = m,
                     .ffn = {.times = 1},
                     .reads_tokens = false,
                     .objectives = {"classes"},
                     .keys = {"model.embed", "model.ffn", "model.dropout", "model.bias", "model.bias_ffn",
                              "model.activation"}},
          .build = perceptron,
          .hugging_face = {}};
}

}  // namespace kintsugi::models
