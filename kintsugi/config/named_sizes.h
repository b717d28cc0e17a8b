// Models of the literature by name, as their papers or published weights give them.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

struct NamedSize {
  std::string_view name;
  std::string_view source;
  std::string_view family;
  int64_t layers, embed, heads, kv_heads, ffn, vocab, context;
  bool bias, tied;
  std::string_view activation;
  double norm_epsilon, rope_theta;
};

std::span<const NamedSize> named_sizes();
const NamedSize* find_named_size(std::string_view name);  // null if there is none
std::vector<std::string_view> named_size_names();

// The numbers of `size` as a [model]; its name is set, its dropout is the default.
Model model_of(const NamedSize& size);

}  // namespace kintsugi::config
