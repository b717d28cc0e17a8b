#include "kintsugi/exchange/config_images.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/config/value.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::exchange {
namespace {

using base::Json;
using Sizes = std::vector<int64_t>;

// A convolutional network in transformers.
struct NetSizes {
  std::string_view family;
  std::string_view type;  // of a ResNet: "layer_type"
  Sizes depths, hidden;
};

const std::vector<NetSizes>& net_sizes() {
  static const Sizes plain = {64, 128, 256, 512}, wide = {256, 512, 1024, 2048}, next = {96, 192, 384, 768};
  static const std::vector<NetSizes> list = {
      {"resnet18", "basic", {2, 2, 2, 2}, plain},       {"resnet34", "basic", {3, 4, 6, 3}, plain},
      {"resnet50", "bottleneck", {3, 4, 6, 3}, wide},   {"resnet101", "bottleneck", {3, 4, 23, 3}, wide},
      {"resnet152", "bottleneck", {3, 8, 36, 3}, wide}, {"convnext_tiny", "", {3, 3, 9, 3}, next},
      {"convnext_small", "", {3, 3, 27, 3}, next},      {"convnext_base", "", {3, 3, 27, 3}, {128, 256, 512, 1024}}};
  return list;
}

struct VitSizes {
  std::string_view name;
  int64_t layers, embed, heads, ffn, patch = 0;
};

constexpr VitSizes kTorchvision[] = {{"vit_b_16", 12, 768, 12, 3072, 16},
                                     {"vit_b_32", 12, 768, 12, 3072, 32},
                                     {"vit_l_16", 24, 1024, 16, 4096, 16},
                                     {"vit_l_32", 24, 1024, 16, 4096, 32},
                                     {"vit_h_14", 32, 1280, 16, 5120, 14}};
// timm's names go on with _patchP_SIZE.
constexpr VitSizes kTimm[] = {{"vit_tiny", 12, 192, 3, 768},    {"vit_small", 12, 384, 6, 1536},
                              {"vit_base", 12, 768, 12, 3072},  {"vit_large", 24, 1024, 16, 4096},
                              {"vit_huge", 32, 1280, 16, 5120}, {"deit_tiny", 12, 192, 3, 768},
                              {"deit_small", 12, 384, 6, 1536}, {"deit_base", 12, 768, 12, 3072}};

constexpr int64_t kImageSize = 224;
constexpr double kEpsilon = 1e-6;  // of the layer norms of timm and torchvision

void set_text(ModelText& model, std::string_view key, std::string_view value) {
  model.set(key, config::to_toml(value));
}

Sizes take_sizes(ConfigReader& config, std::string_view key, const Sizes& absent) {
  const std::optional<Json> given = config.take(key);
  if (!given) return absent;
  Sizes sizes;
  for (const Json& item : given->list()) sizes.push_back(item.whole(0, 1'000'000));
  return sizes;
}

std::string take_text(ConfigReader& config, std::string_view key, std::string_view absent) {
  const std::optional<Json> given = config.take(key);
  return std::string(given ? given->text() : absent);
}

// Refuses another value than `only`, in JSON, because `why`.
void require(ConfigReader& config, std::string_view key, std::string_view only, std::string_view why = "") {
  const std::optional<Json> given = config.take(key);
  if (given && given->compact() != only)
    given->fail("\"{}\" is {}{}{}; here there is only {}", key, given->shown(), why.empty() ? "" : ": ", why, only);
}

// A number, or [height width].
Sizes read_size(const Json& given) {
  if (!given.is_list()) return {given.whole(1, 1'000'000)};
  Sizes size;
  for (const Json& item : given.list()) size.push_back(item.whole(1, 1'000'000));
  if (size.empty() || size.size() > 2) given.refuse("a number, or a list of height and width");
  return size;
}

void set_image_size(const std::optional<Json>& given, ModelText& model) {
  const Sizes size = given ? read_size(*given) : Sizes{kImageSize};
  model.set("image_height", size.front());
  model.set("image_width", size.back());
}

// The family with these sizes.
std::string_view read_net(ConfigReader& config, std::string_view kind, std::string_view type, const NetSizes& absent) {
  const Sizes depths = take_sizes(config, "depths", absent.depths),
              hidden = take_sizes(config, "hidden_sizes", absent.hidden);
  std::string known;
  for (const NetSizes& sizes : net_sizes()) {
    if (!sizes.family.starts_with(kind)) continue;
    if (sizes.depths == depths && sizes.hidden == hidden && sizes.type == type) return sizes.family;
    known += fmt::format("{}{} ({}{}depths {}, sizes from {})", known.empty() ? "" : ", ", sizes.family, sizes.type,
                         sizes.type.empty() ? "" : ", ", sizes.depths, sizes.hidden.front());
  }
  const Json place = config.root().find("depths").value_or(config.root().at("model_type"));
  place.fail("{}\"depths\" {} and \"hidden_sizes\" {} are those of no family; there are {}",
             type.empty() ? "" : fmt::format("\"layer_type\" \"{}\", ", type), depths, hidden, known);
}

std::string_view read_resnet(ConfigReader& config, ModelText& model) {
  require(config, "hidden_act", "\"relu\"");
  require(config, "embedding_size", "64");
  require(config, "downsample_in_first_stage", "false");
  require(config, "downsample_in_bottleneck", "false",
          "the stride of a bottleneck is in its first convolution, as in ResNet v1");
  set_text(model, "stem", "large");
  return read_net(config, "resnet", take_text(config, "layer_type", "bottleneck"), net_sizes()[2]);
}

std::string_view read_convnext(ConfigReader& config, ModelText& model) {
  require(config, "hidden_act", "\"gelu\"");
  require(config, "patch_size", "4");
  require(config, "num_stages", "4");
  if (const auto scale = config.take("layer_scale_init_value"); scale && scale->number() <= 0.0)
    scale->fail("\"layer_scale_init_value\" is {}, a model without layer scale; here there are only those with it",
                scale->shown());
  if (const auto drop = config.take("drop_path_rate")) model.set("drop_path", drop->number());
  const auto epsilon = config.take("layer_norm_eps");
  model.set("final_norm_epsilon", epsilon ? epsilon->number() : 1e-12);
  return read_net(config, "convnext", "", net_sizes()[5]);
}

void set_vit(const VitSizes& sizes, int64_t patch, ModelText& model) {
  model.set("layers", sizes.layers);
  model.set("embed", sizes.embed);
  model.set("heads", sizes.heads);
  model.set("ffn", sizes.ffn);
  model.set("patch", patch);
  model.set("norm_epsilon", kEpsilon);
}

void set_classes(int64_t outputs, ModelText& model) {
  set_text(model, "objective", "classes");
  model.set("outputs", outputs);
}

void read_torchvision_vit(ConfigReader& config, const VitSizes& sizes, ModelText& model) {
  set_vit(sizes, sizes.patch, model);
  const auto classes = config.take("num_labels"), height = config.take("image_height"),
             width = config.take("image_width");
  set_classes(classes ? classes->whole(1, 100'000) : 1000, model);
  if (height || width) {
    model.set("image_height", (height ? *height : *width).whole(1, 1'000'000));
    model.set("image_width", (width ? *width : *height).whole(1, 1'000'000));
  } else {
    set_image_size(config.take("image_size"), model);
  }
}

// The number of a word "patch16", or 0.
int64_t number_after(std::string_view word, std::string_view begin) {
  if (!word.starts_with(begin)) return 0;
  word.remove_prefix(begin.size());
  int64_t number = 0;
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
  return error == std::errc() && end == word.data() + word.size() ? number : 0;
}

std::vector<std::string> split_at(std::string_view text, char separator) {
  std::string spaced(text);
  std::ranges::replace(spaced, separator, ' ');
  return tensor::words(spaced);
}

// "vit_small_patch16_224". Returns the size of the images, or nothing for another architecture.
std::optional<int64_t> read_timm_vit(std::string_view architecture, ModelText& model) {
  const std::vector<std::string> words = split_at(architecture, '_');
  if (words.size() != 4) return std::nullopt;
  const int64_t patch = number_after(words[2], "patch"), size = number_after(words[3], "");
  for (const VitSizes& sizes : kTimm)
    if (sizes.name == words[0] + "_" + words[1] && patch > 0 && size > 0) {
      set_vit(sizes, patch, model);
      return size;
    }
  return std::nullopt;
}

std::optional<Json> member(const std::optional<Json>& object, std::string_view key) {
  const std::optional<Json> value = object && !object->is_null() ? object->find(key) : std::nullopt;
  return value && value->is_null() ? std::nullopt : value;
}

void set_numbers(const std::optional<Json>& list, std::string_view key, double standard, ModelText& model) {
  if (!list) return;
  std::vector<double> numbers;
  for (const Json& item : list->list()) numbers.push_back(item.number());
  if (std::ranges::any_of(numbers, [&](double x) { return x != standard; })) model.set(key, numbers);
}

// Arguments of the constructor, which repeat other members or change the architecture. `sizes`: channels, height,
// width.
void read_timm_arguments(const Json& arguments, std::string_view pool, Sizes& sizes) {
  for (const Json& argument : arguments.members()) {
    const std::string_view key = argument.key();
    if (argument.is_null() || key == "num_classes" || key == "drop_rate" || key == "drop_path_rate" ||
        (key == "global_pool" && argument.compact() == fmt::format("\"{}\"", pool)))
      continue;
    if (key == "in_chans") {
      sizes[0] = argument.whole(1, 1'000'000);
    } else if (key == "img_size") {
      const std::vector<int64_t> size = read_size(argument);
      sizes[1] = size.front();
      sizes[2] = size.back();
    } else {
      argument.fail("\"model_args\" has \"{}\" = {}, which changes the architecture in a way not known here", key,
                    argument.shown());
    }
  }
}

std::string read_timm(ConfigReader& config, ModelText& model) {
  const Json named = config.root().at("architecture");
  config.ignore("architecture");
  for (const char* key : {"num_features", "pool_size", "license", "tags", "library_name"}) config.ignore(key);
  std::string_view architecture = named.text();
  architecture = architecture.substr(0, architecture.find('.'));  // without the tag of the weights
  if (architecture.starts_with("tv_")) architecture.remove_prefix(3);
  std::optional<Json> data = config.take("pretrained_cfg");
  if (!data) {  // of the first versions
    data = config.root();
    for (const char* key :
         {"input_size", "mean", "std", "interpolation", "crop_pct", "first_conv", "classifier", "url", "hf_hub_id"})
      config.ignore(key);
  }
  std::optional<int64_t> size;
  bool is_vit = false;
  const auto& nets = net_sizes();
  if (std::ranges::count(nets, architecture, &NetSizes::family) > 0) {
    if (architecture.starts_with("resnet")) set_text(model, "stem", "large");
  } else if (size = read_timm_vit(architecture, model); size) {
    is_vit = true;
  } else {
    std::string names;
    for (const NetSizes& net : nets) names += std::string(net.family) + ", ";
    named.fail("the architecture {} of timm is not known here; there are {}and (vit|deit)_SIZE_patchP_PIXELS",
               named.shown(), names);
  }
  const std::string_view pool = is_vit ? "token" : "avg";
  if (const auto given = config.take("global_pool"); given && given->text() != pool)
    given->fail("\"global_pool\" is {}; here there is only \"{}\"", given->shown(), pool);
  Sizes sizes = {3, size.value_or(kImageSize), size.value_or(kImageSize)};
  if (const auto input = member(data, "input_size")) {
    sizes.clear();
    for (const Json& item : input->list()) sizes.push_back(item.whole(1, 1'000'000));
    if (sizes.size() != 3) input->refuse("a list of channels, height and width");
  }
  if (const auto arguments = config.take("model_args")) read_timm_arguments(*arguments, pool, sizes);
  model.set("image_channels", sizes[0]);
  model.set("image_height", sizes[1]);
  model.set("image_width", sizes[2]);
  const auto classes = config.take("num_classes"), published = member(data, "num_classes");
  const int64_t outputs = classes ? classes->whole(0, 100'000) : published ? published->whole(0, 100'000) : 1000;
  set_classes(outputs > 0 ? outputs : 1000, model);  // 0: without a head
  set_numbers(member(data, "mean"), "image_mean", 0.5, model);
  set_numbers(member(data, "std"), "image_deviation", 0.5, model);
  return is_vit ? "vit" : std::string(architecture);
}

}  // namespace

config::Objective read_labels(const Json& root, ModelText& model) {
  const auto labels = root.find("id2label"), count = root.find("num_labels"), problem = root.find("problem_type");
  const int64_t outputs = labels && !labels->is_null() ? static_cast<int64_t>(labels->members().size())
                          : count && !count->is_null() ? count->whole(1, 100'000)
                                                       : 2;
  const std::string_view kind = problem && !problem->is_null() ? problem->text() : "";
  if (kind == "multi_label_classification") problem->fail("several labels of one sample are not known here");
  model.set("outputs", outputs);
  return kind == "regression" || (kind.empty() && outputs == 1) ? config::Objective::numbers
                                                                : config::Objective::classes;
}

std::vector<std::string_view> other_image_types() {
  std::vector<std::string_view> types = {"resnet", "convnext"};
  for (const VitSizes& sizes : kTorchvision) types.push_back(sizes.name);
  return types;
}

std::optional<OtherImageModel> read_other_image_model(ConfigReader& config, ModelText& model) {
  const Json& root = config.root();
  const std::optional<Json> type = root.is_object() ? root.find("model_type") : std::nullopt;
  if (root.is_object() && !type && root.has("architecture")) {
    return OtherImageModel{.family = read_timm(config, model), .named_by = "architecture"};
  }
  if (!type || !type->is_text()) return std::nullopt;
  for (const VitSizes& sizes : kTorchvision)
    if (sizes.name == type->text()) {
      read_torchvision_vit(config, sizes, model);
      return OtherImageModel{.family = "vit", .named_by = {}};
    }
  const bool resnet = type->text() == "resnet";
  if (!resnet && type->text() != "convnext") return std::nullopt;
  const std::string_view family = resnet ? read_resnet(config, model) : read_convnext(config, model);
  const config::Objective objective = read_labels(root, model);
  set_text(model, "objective", config::kObjectives[static_cast<size_t>(objective)]);
  set_image_size(config.take("image_size"), model);
  for (const char* key : {"num_hidden_layers", "stage_names", "out_features", "out_indices"}) config.ignore(key);
  return OtherImageModel{.family = std::string(family), .named_by = {}, .any_size = true};
}

std::string_view transformers_architecture(const config::Model& model) {
  return model.family.starts_with("resnet") ? "ResNetForImageClassification" : "ConvNextForImageClassification";
}

void write_transformers_images(const config::Model& m, base::JsonWriter& out) {
  const auto& nets = net_sizes();
  const auto sizes = std::ranges::find(nets, m.family, &NetSizes::family);
  if (sizes == nets.end())
    throw base::UserError("model", "transformers has no class for the family {}; leave out --names", m.family);
  const bool resnet = m.family.starts_with("resnet");
  const auto list = [&](std::string_view key, const Sizes& numbers) {
    out.key(key).list([&] {
      for (const int64_t n : numbers) out.value(n);
    });
  };
  out.key("model_type").value(resnet ? "resnet" : "convnext");
  out.key("num_channels").value(m.image_channels);
  list("depths", sizes->depths);
  list("hidden_sizes", sizes->hidden);
  if (resnet) {
    out.key("layer_type").value(sizes->type);
    out.key("embedding_size").value(int64_t{64});
    out.key("hidden_act").value("relu");
    out.key("downsample_in_first_stage").value(false);
    out.key("downsample_in_bottleneck").value(false);
  } else {
    out.key("hidden_act").value("gelu");
    out.key("patch_size").value(int64_t{4});
    out.key("num_stages").value(int64_t{4});
    out.key("layer_scale_init_value").value(1e-6);
    out.key("layer_norm_eps").value(m.final_norm_epsilon);
    out.key("drop_path_rate").value(m.drop_path);
  }
  if (m.image_height == m.image_width)
    out.key("image_size").value(m.image_height);
  else
    list("image_size", {m.image_height, m.image_width});
}

}  // namespace kintsugi::exchange
