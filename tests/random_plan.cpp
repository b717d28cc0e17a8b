#include "tests/random_plan.h"

#include <algorithm>
#include <random>
#include <vector>

namespace kintsugi::tests {

config::Settings random_model(uint64_t seed) {
  config::Settings s = small_model(seed % 2 ? "llama" : "gpt", "fp64");
  s.model.layers = 1 + static_cast<int64_t>(seed % 5 == 0);
  s.model.dropout = 0.2;
  s.model.kv_heads = seed % 3 == 0 ? 1 : seed % 3 == 1 ? 2 : 3;
  s.model.heads = 6;
  s.model.ffn = 33;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  s.data.reset_at_document = seed % 7 == 3;
  return s;
}

plan::Plan random_plan(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](const std::vector<std::string>& list) { return list[random() % list.size()]; };
  const auto chance = [&](double p) { return std::uniform_real_distribution<>()(random) < p; };
  const auto axes = [&] {
    std::vector<std::string> all = {"a", "b", "c"};
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % 2);
    return all;
  };
  std::vector<plan::Rule> rules;
  for (uint64_t i = 2 + random() % 8; i > 0; --i)
    rules.push_back(
        {.dim = one_of({"batch", "seq", "embed", "ffn", "vocab", "kv_heads", "group", "head_dim", "key_seq"}),
         .axes = axes(),
         .family = one_of(
             {"",          "",         "",          "",     "",      "",    "attention", "head",          "layer_norm",
              "rms_norm",  "contract", "embedding", "gelu", "gated", "add", "dropout",   "cross_entropy", "weight",
              "optimizer", "gradient"}),
         .pad = chance(0.6)});
  for (const char* family : {"optimizer", "gradient", "weight"})
    if (chance(0.4)) rules.push_back({.dim = "flat", .axes = axes(), .family = family});
  if (chance(0.4))
    rules.push_back({.dim = "key_seq", .axes = axes(), .family = "attention", .pad = true, .steps = true});
  std::shuffle(rules.begin(), rules.end(), random);
  const std::vector<std::string> zigzag =
      chance(0.3) ? std::vector<std::string>{"seq", "key_seq"} : std::vector<std::string>();
  const auto size = [&](std::initializer_list<int64_t> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random() % list.size()));
  };
  return {.mesh = mesh::Mesh({{"a", 2, zigzag}, {"b", size({1, 2, 3})}, {"c", size({1, 2})}}),
          .rules = std::move(rules),
          .keep = chance(0.3),
          .keep_logits = chance(0.7),
          .repeat = true};
}

plan::Plan in_stages(plan::Plan plan, uint64_t seed) {
  std::mt19937_64 random(seed + 1'000'000);
  std::vector<mesh::Axis> axes = plan.mesh.axes();
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(random() % (axes.size() + 1)),
              {.name = "pipe", .size = 2, .cuts_layers = true});
  plan.mesh = mesh::Mesh(axes);
  const std::vector<std::string> schedules = {"gpipe", "1f1b", "interleaved", "zero_bubble"};
  plan.schedule = schedules[random() % schedules.size()];
  if (plan.schedule == "interleaved") plan.chunks = 2;
  if (random() % 3 == 0) plan.layers = plan.chunks == 2 ? std::vector<int64_t>{1, 1, 1, 1} : std::vector<int64_t>{1, 3};
  return plan;
}

config::Settings staged_model(uint64_t seed) {
  config::Settings s = random_model(seed);
  s.model.layers = 4;
  s.train.micro_batch = 2;
  if (seed % 2) s.model.dropout = 0;
  return s;
}

std::string random_recompute(uint64_t seed) {
  return seed % 3 == 0 ? "full" : seed % 3 == 1 ? "selective" : "none";
}

}  // namespace kintsugi::tests
