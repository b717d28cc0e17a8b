#include "kintsugi/models/models.h"

#include "kintsugi/base/error.h"
#include "kintsugi/models/optimizers.h"

namespace kintsugi::models {

std::span<const Family> families() {
  static const std::vector<Family> list = [] {
    std::vector<Family> rows = {gpt(),           llama(),    mistral(),   qwen2(),    qwen3(),         olmo2(),
                                olmo3(),         smollm3(),  phi3(),      gemma3(),   gptneox(),       gptj(),
                                bert(),          mixtral(),  qwen3_moe(), olmoe(),    gpt_oss(),       deepseek_v3(),
                                mlp(),           lenet(),    resnet18(),  resnet34(), resnet50(),      resnet101(),
                                resnet152(),     alexnet(),  vgg11(),     vgg13(),    vgg16(),         vgg19(),
                                vgg11_bn(),      vgg13_bn(), vgg16_bn(),  vgg19_bn(), convnext_tiny(), convnext_small(),
                                convnext_base(), unet(),     cosmoflow(), vit()};
    for (Family& row : rows) row.config.defaults.family = row.config.name;
    return rows;
  }();
  return list;
}

const Family& family(std::string_view name) {
  std::string names;
  for (const Family& f : families()) {
    if (f.config.name == name) return f;
    names += (names.empty() ? "" : ", ") + std::string(f.config.name);
  }
  throw base::UserError("model", "no family \"{}\"; there are {}", name, names);
}

bool reads_tokens(const config::Model& model) {
  return family(model.family).config.reads_tokens;
}

bool reads_images(const config::Model& model) {
  return family(model.family).config.reads_images;
}

std::string_view unit_of(const config::Model& model) {
  return reads_tokens(model) ? "tokens" : reads_images(model) ? "images" : "samples";
}

const config::Catalog& catalog() {
  static const std::vector<config::Family> rows = [] {
    std::vector<config::Family> list;
    for (const Family& f : families()) list.push_back(f.config);
    return list;
  }();
  static const std::vector<config::Optimizer> updates = [] {
    std::vector<config::Optimizer> list;
    for (const Optimizer& o : optimizers()) list.push_back(o.config);
    return list;
  }();
  static const config::Catalog catalog = {rows, named_sizes(), updates};
  return catalog;
}

config::Model defaults_of(std::string_view name) {
  return family(name).config.defaults;
}

}  // namespace kintsugi::models
