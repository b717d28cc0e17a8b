// For the tests of this module: the text of an error, and a catalog of models.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/config/catalog.h"
#include "kintsugi/config/read.h"

namespace kintsugi::config {

// The text of the UserError that `f` throws, or "no error".
template <typename F>
std::string error_of(F&& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    return error.what();
  }
  return "no error";
}

// Two families, a size of each, and two optimizers.
inline const Catalog& test_catalog() {
  static const std::vector<Family> families = [] {
    Model m;
    m.family = "llama";
    m.bias = m.bias_query_key_value = m.bias_output = m.bias_ffn = m.bias_norm = m.tied = false;
    m.norm = "rms";
    m.gated = true;
    m.activation = "silu";
    m.positions = "rotary";
    return std::vector<Family>{{.name = "gpt", .about = "learned positions"},
                               {.name = "llama", .about = "rotary", .defaults = m, .ffn = {8, 3, 32}}};
  }();
  static const std::vector<NamedSize> sizes = [] {
    Model gpt2;
    gpt2.name = "gpt2";
    gpt2.layers = 12;
    gpt2.embed = 768;
    gpt2.heads = gpt2.kv_heads = 12;
    gpt2.ffn = 3072;
    gpt2.vocab = 50257;
    gpt2.context = 1024;
    Model llama2 = families[1].defaults;
    llama2.name = "llama2-7b";
    llama2.layers = 32;
    llama2.embed = 4096;
    llama2.heads = llama2.kv_heads = 32;
    llama2.ffn = 11008;
    llama2.vocab = 32000;
    llama2.context = 4096;
    Model medium = gpt2;
    medium.name = "gpt2-medium";
    medium.embed = 1024;
    medium.heads = medium.kv_heads = 16;
    return std::vector<NamedSize>{
        {"gpt2", "a test", gpt2}, {"gpt2-medium", "a test", medium}, {"llama2-7b", "a test", llama2}};
  }();
  static const std::vector<Optimizer> optimizers = {{"adamw", "a test", {"train.betas", "train.epsilon"}},
                                                    {"sgd", "a test", {"train.momentum"}}};
  static const Catalog catalog = {families, sizes, optimizers};
  return catalog;
}

inline Given read_text(std::string_view text, std::string_view name, std::span<const std::string> sets = {}) {
  return read_text(text, name, test_catalog(), sets);
}

}  // namespace kintsugi::config
