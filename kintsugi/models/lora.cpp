#include "kintsugi/models/lora.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/models/freeze.h"

namespace kintsugi::models {
namespace {

bool is_end(std::string_view pattern, std::string_view name) {
  if (matches_all(pattern, name)) return true;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    if (matches_all(pattern, name.substr(dot + 1))) return true;
  return false;
}

}  // namespace

bool is_adapter(std::string_view weight) {
  return weight.ends_with(kLoraA) || weight.ends_with(kLoraB);
}

bool has_adapter(const config::Lora& lora, std::string_view layer) {
  if (lora.rank == 0) return false;
  return lora.targets.empty() ||
         std::ranges::any_of(lora.targets, [&](const std::string& target) { return is_end(target, layer); });
}

bool has_expert_adapters(const config::Lora& lora, std::string_view layer) {
  return !lora.targets.empty() && has_adapter(lora, layer);
}

std::optional<tensor::DType> frozen_dtype(const config::Lora& lora) {
  if (lora.rank == 0 || lora.frozen_dtype == "same") return std::nullopt;
  return tensor::dtype_from(lora.frozen_dtype);
}

double lora_scale(const config::Lora& lora) {
  return lora.alpha / static_cast<double>(lora.rank);
}

void require_targets(const graph::StateTable& states, const config::Lora& lora) {
  std::vector<std::string> layers, adapted;
  for (const graph::State& s : states) {
    if (s.kind != graph::StateKind::weight || s.layer < 0) continue;
    if (s.name.ends_with(kLoraA)) adapted.push_back(s.name.substr(0, s.name.size() - kLoraA.size()));
    if (s.name.ends_with(kWeight) && s.type.shape.rank() > 1)
      layers.push_back(s.name.substr(0, s.name.size() - kWeight.size()));
  }
  for (const std::string& target : lora.targets)
    if (std::ranges::none_of(adapted, [&](const std::string& layer) { return is_end(target, layer); }))
      throw base::UserError("model", "lora.targets: no linear layer of a block matches \"{}\"{}",
                            base::one_line(target, 60), nearest_names(target, layers));
}

}  // namespace kintsugi::models
