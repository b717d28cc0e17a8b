#include "kintsugi/models/image_family.h"

namespace kintsugi::models {

bool replace_end(std::string& name, std::string_view end, std::string_view other) {
  if (!name.ends_with(end)) return false;
  name.replace(name.size() - end.size(), end.size(), other);
  return true;
}

std::string ImageFamily::torch_name(std::string_view ours) {
  std::string name(ours);
  static_cast<void>(replace_end(name, ".gamma", ".weight") || replace_end(name, ".beta", ".bias") ||
                    replace_end(name, ".mean", ".running_mean") || replace_end(name, ".variance", ".running_var"));
  return name;
}

Family image_family(const ImageFamily& family) {
  config::Model m;
  m.objective = family.objective;
  m.activation = "relu";
  m.positions = "none";
  m.tied = false;
  std::vector<ConfigRow> keys = {
      is("num_channels", "image_channels", "3"),
      is("image_height", "image_height", "224"),
      is("image_width", "image_width", "224"),
      is("image_depth", "image_depth", "null"),
      is("num_labels", "outputs", "1000"),
      is("image_mean", "image_mean", "null"),
      is("image_std", "image_deviation", "null"),
      {"image_dtype", ConfigRow::Use::is, "image_dtype", "\"uint8\"", "uint8:uint8 float32:fp32"},
      {"objective", ConfigRow::Use::is, "objective", "\"classes\"",
       "classes:classes numbers:numbers pixels:pixels fields:fields"}};
  keys.insert(keys.end(), family.config.begin(), family.config.end());
  if (family.objective == "pixels") keys.push_back(is("width", "embed", "128"));
  return {.config = {.name = family.name,
                     .about = family.about,
                     .defaults = m,
                     .reads_tokens = false,
                     .reads_images = true,
                     .layers = family.layers,
                     .objectives = family.objectives,
                     .keys = family.keys},
          .build = family.build,
          .hugging_face = {.model_types = {family.name},
                           .architectures = {},
                           .prefix = "",
                           .config = std::move(keys),
                           .weights = {},
                           .computed = {"*.num_batches_tracked"},
                           .their_name = family.their_name}};
}

}  // namespace kintsugi::models
