// Mistral (Jiang et al. 2023): Llama with a window.
#include "kintsugi/models/family.h"
#include "kintsugi/models/models.h"

namespace kintsugi::models {

Family mistral() {
  config::Model m = llama_defaults();
  m.window = 4096;
  std::vector<ConfigRow> config = llama_config({.vocab = "32000",
                                                .embed = "4096",
                                                .ffn = "14336",
                                                .layers = "32",
                                                .heads = "32",
                                                .kv_heads = "8",
                                                .context = "131072"});
  return {.config = {.name = "mistral",
                     .about = "Mistral: Llama with a window",
                     .defaults = m,
                     .ffn = {.times = 8, .per = 3, .multiple = 32}},
          .build = transformer,
          .hugging_face = {.model_types = {"mistral"},
                           .architectures = {{"MistralForCausalLM"}},
                           .prefix = "model.",
                           .config = config,
                           .weights = llama_weights(),
                           .rope = RopeKeys{},
                           .windows = WindowKeys{.absent = "4096"}}};
}

}  // namespace kintsugi::models
