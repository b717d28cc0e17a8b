// Small models for the tests of this folder: a checkpoint of random weights for each family.
#pragma once

#include <cstring>
#include <random>
#include <string>

#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/exchange/weight_map.h"
#include "kintsugi/models/models.h"

namespace kintsugi::exchange {

inline config::Resolved small_deepseek(const std::string& more) {
  const std::string text =
      "[model]\nfamily = \"deepseek_v3\"\nlayers = 3\nembed = 24\nheads = 4\nkv_heads = 4\nhead_dim = 6\n"
      "rotary_head_dim = 4\nvalue_head_dim = 5\nkv_rank = 7\nquery_rank = 9\nffn = 20\nexperts = 8\n"
      "experts_per_token = 3\nexpert_groups = 4\ngroups_per_token = 2\nvocab = 11\ncontext = 16\n" +
      std::string(more.find("dense_layers = 0") == more.npos ? "dense_ffn = 28\n" : "") + more;
  config::Given given = config::read_text(text, "run.toml", models::catalog());
  return {config::fill_derived(std::move(given), 1), {}};
}

// `more`: additional lines of [model].
inline config::Resolved small_run(std::string_view family, const std::string& more = "") {
  const std::string heads =
      family == "gpt" || family == "gptneox" || family == "gptj" || family == "bert" ? "4" : "2\nhead_dim = 6";
  const std::string rotary = family == "gptj" ? "rotary_dims = 2\n" : "",
                    experts = family == "gpt_oss" ? "experts = 4\nexperts_per_token = 2\n" : "";
  if (family == "deepseek_v3") return small_deepseek(more);
  const std::string text =
      "[model]\nfamily = \"" + std::string(family) + "\"\nlayers = 6\nembed = " + (heads == "4" ? "16" : "24") +
      "\nheads = 4\nkv_heads = " + heads + "\nffn = 20\nvocab = 11\ncontext = 16\n" + rotary + experts + more;
  config::Given given = config::read_text(text, "run.toml", models::catalog());
  return {config::fill_derived(std::move(given), 1), {}};
}

// Saves random weights of that model to RUN/step_00000000.
inline std::filesystem::path save_random(const config::Resolved& run, const std::filesystem::path& folder,
                                         tensor::DType dtype = tensor::DType::f32) {
  checkpoint::CheckpointWriter writer(folder, 0);
  std::mt19937 random(7);
  std::vector<std::vector<std::byte>> kept;
  for (const MappedTensor& tensor : weight_map(models::family(run.settings.model.family), run.settings.model))
    for (const MappedWeight& w : tensor.weights) {
      if (w.begin > 0) continue;  // part of a weight that already exists
      std::vector<std::byte>& bytes = kept.emplace_back();
      for (int64_t i = 0; i < w.whole.elements() * size_of(dtype); ++i)
        bytes.push_back(static_cast<std::byte>(random() & 0x3f));  // finite in every dtype
      writer.add({.name = w.name, .type = {w.whole, dtype}, .kind = checkpoint::Kind::weight, .box = {}, .flat = {}},
                 bytes);
    }
  writer.write();
  return writer.finish({.state = "{}", .config = config::to_toml(run), .tokenizer = {}});
}

}  // namespace kintsugi::exchange
