// The trained Llama of shared/data/stories260K (Hugging Face form) in our model, for tests.
#pragma once

#include <cstring>
#include <filesystem>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/safetensors.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/run/executor.h"
#include "tests/paths.h"

namespace kintsugi::tests {

inline std::filesystem::path stories_folder() {
  return std::filesystem::path(shared_folder()) / "data" / "stories260K";
}

inline nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(base::read_file(path));
}

inline config::Model stories_model() {
  const nlohmann::json j = read_json(stories_folder() / "hf_derived" / "config.json");
  config::Model m;
  m.family = "llama";
  m.layers = j.at("num_hidden_layers");
  m.embed = j.at("hidden_size");
  m.heads = j.at("num_attention_heads");
  m.kv_heads = j.at("num_key_value_heads");
  m.ffn = j.at("intermediate_size");
  m.vocab = j.at("vocab_size");
  m.context = j.at("max_position_embeddings");
  m.norm_epsilon = j.at("rms_norm_eps");
  m.rope_theta = j.at("rope_theta");
  m.activation = j.at("hidden_act");
  m.tied = j.at("tie_word_embeddings");
  m.bias = j.at("attention_bias");
  return m;
}

// A projection is [out in] there and [in, out ...] here; rows of queries are kv_heads x group x head_dim in both.
struct StoriesName {
  std::string theirs;
  bool transposed = false;
};

inline StoriesName stories_name(const std::string& ours) {
  if (ours == "embedding.table") return {"model.embed_tokens.weight"};
  if (ours == "final_norm.gamma") return {"model.norm.weight"};
  const size_t dot = ours.find('.');
  const std::string layer = "model.layers." + ours.substr(5, dot - 5) + ".", rest = ours.substr(dot + 1);
  if (rest == "attention_norm.gamma") return {layer + "input_layernorm.weight"};
  if (rest == "ffn_norm.gamma") return {layer + "post_attention_layernorm.weight"};
  if (rest == "attention.query.weight") return {layer + "self_attn.q_proj.weight", true};
  if (rest == "attention.key.weight") return {layer + "self_attn.k_proj.weight", true};
  if (rest == "attention.value.weight") return {layer + "self_attn.v_proj.weight", true};
  if (rest == "attention.output.weight") return {layer + "self_attn.o_proj.weight", true};
  return {layer + "mlp." + rest.substr(4, rest.find('.', 4) - 4) + "_proj.weight", true};
}

// Fills the weights of an executor; true if every tensor of the file was used, with its size.
inline bool load_stories(const run::Executor& executor) {
  const checkpoint::SafetensorsFile file(stories_folder() / "hf_derived" / "model.safetensors");
  size_t used = 0;
  for (const program::StateInfo& s : executor.program().states) {
    if (s.kind != program::StateKind::weight) continue;
    const StoriesName name = stories_name(s.name);
    const checkpoint::TensorInFile from = file.at(name.theirs);
    const tensor::View to = executor.state(s.name);
    if (from.bytes != static_cast<size_t>(to.elements()) * sizeof(float)) return false;
    std::vector<float> x(static_cast<size_t>(to.elements()));
    from.read_at(0, std::as_writable_bytes(std::span(x)));
    const size_t columns = name.transposed ? static_cast<size_t>(from.shape[1]) : 1, rows = x.size() / columns;
    tensor::dispatch(to.dtype(), [&]<typename T>(T) {
      for (size_t r = 0; r < rows; ++r)
        for (size_t c = 0; c < columns; ++c) to.as<T>()[c * rows + r] = static_cast<T>(x[r * columns + c]);
    });
    ++used;
  }
  return used == file.header().tensors.size();
}

}  // namespace kintsugi::tests
