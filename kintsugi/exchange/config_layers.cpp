#include "kintsugi/exchange/config_layers.h"

#include <algorithm>

#include "kintsugi/config/choices.h"

namespace kintsugi::exchange {
namespace {

using base::Json;
using models::HuggingFace;
using models::WindowKeys;

// The shortest list that repeats to `words`.
std::vector<std::string> period_of(const std::vector<std::string>& words) {
  for (size_t period = 1; period < words.size(); ++period) {
    bool repeats = true;
    for (size_t i = period; i < words.size() && repeats; ++i) repeats = words[i] == words[i - period];
    if (repeats) return {words.begin(), words.begin() + static_cast<int64_t>(period)};
  }
  return words;
}

// Whether each layer has rotary positions.
std::vector<bool> read_rotary(ConfigReader& config, const HuggingFace& family, int64_t layers, ModelText& model) {
  std::vector<bool> turns;
  if (family.no_rope_layers.empty()) return std::vector<bool>(static_cast<size_t>(layers), true);
  const std::optional<Json> list = config.take(family.no_rope_layers), every = config.take("no_rope_layer_interval");
  const int64_t n = every ? every->whole(1) : 4;
  for (int64_t i = 0; i < layers; ++i) turns.push_back((i + 1) % n != 0);
  if (list) {
    if (static_cast<int64_t>(list->list().size()) < layers)
      list->fail("\"{}\" has {} items for {} layers", family.no_rope_layers, list->list().size(), layers);
    size_t i = 0;
    for (const Json& item : list->list()) {
      if (i == turns.size()) break;
      turns[i++] = item.whole(0, 1) == 1;
    }
  }
  std::vector<std::string> words;
  for (const bool turned : turns) words.emplace_back(config::kRotaryLayers[turned ? 1 : 0]);
  model.set("rotary_layers", period_of(words));
  return turns;
}

// Whether layers differ; otherwise layer_types and the like are not keys of the family.
bool by_layer(const WindowKeys& keys) {
  return keys.after_max_window_layers || keys.without_rotary || keys.full_every > 0;
}

// Whether each layer has the window.
std::vector<bool> windowed(ConfigReader& config, const WindowKeys& keys, int64_t layers,
                           const std::vector<bool>& rotary) {
  if (!by_layer(keys)) return std::vector<bool>(static_cast<size_t>(layers), true);
  std::vector<bool> list;
  const std::optional<Json> types = config.take("layer_types"), from = config.take("max_window_layers"),
                            pattern = config.take("sliding_window_pattern"),
                            saved_pattern = config.take("_sliding_window_pattern");  // as transformers 5 writes it
  if (types) {
    if (static_cast<int64_t>(types->list().size()) != layers)
      types->fail("\"layer_types\" has {} items for {} layers", types->list().size(), layers);
    for (const Json& type : types->list()) {
      if (type.text() != kFullAttention && type.text() != kSlidingAttention)
        type.fail("layers of the type {} are not known here; there are {} and {}", type.shown(), kFullAttention,
                  kSlidingAttention);
      list.push_back(type.text() == kSlidingAttention);
    }
    return list;
  }
  const int64_t first = from ? from->whole() : 28, every = pattern         ? pattern->whole(1)
                                                           : saved_pattern ? saved_pattern->whole(1)
                                                                           : keys.full_every;
  for (int64_t i = 0; i < layers; ++i) {
    if (keys.after_max_window_layers)
      list.push_back(i >= first);
    else if (keys.without_rotary)
      list.push_back(!rotary[static_cast<size_t>(i)]);
    else
      list.push_back(every == 0 || (i + 1) % every != 0);
  }
  return list;
}

void read_windows(ConfigReader& config, const WindowKeys& keys, int64_t layers, const std::vector<bool>& rotary,
                  ModelText& model) {
  const std::optional<Json> given = config.take("sliding_window"), used = config.take("use_sliding_window");
  const bool named = config.root().has("sliding_window");
  const std::vector<bool> list = windowed(config, keys, layers, rotary);
  int64_t window = given ? given->whole(1) : 0;
  if (!named && keys.absent != "null") window = Json::parse("model", "default", keys.absent).whole();
  const bool switched_off = keys.switched && !(used && used->boolean());
  std::vector<std::string> words;
  for (const bool has : list) words.emplace_back(config::kWindowLayers[has ? 1 : 0]);
  const auto with = std::ranges::count(list, true), all = std::ranges::ssize(list);
  if (switched_off || with == 0) window = 0;
  model.set("window", window);
  model.set("window_layers", window > 0 && with < all ? period_of(words) : std::vector<std::string>{});
}

}  // namespace

void read_layers(ConfigReader& config, const HuggingFace& family, int64_t layers, ModelText& model) {
  const std::vector<bool> rotary = read_rotary(config, family, layers, model);
  if (family.windows) read_windows(config, *family.windows, layers, rotary, model);
}

void write_layers(const config::Model& m, const HuggingFace& family, base::JsonWriter& out) {
  if (!family.no_rope_layers.empty())
    out.key(family.no_rope_layers).list([&] {
      for (int64_t i = 0; i < m.layers; ++i) out.value(config::has_rotary(m, i) ? 1 : 0);
    });
  if (!family.windows) return;
  // Where layers differ, a model without windows expresses that by layer types.
  const bool by_type = family.windows->full_every > 0;
  const int64_t window =
      m.window == 0 && by_type ? Json::parse("model", "default", family.windows->absent).whole() : m.window;
  window ? out.key("sliding_window").value(window) : out.key("sliding_window").null();
  if (family.windows->switched) out.key("use_sliding_window").value(m.window > 0);
  if (!by_layer(*family.windows)) return;
  if (family.windows->after_max_window_layers) out.key("max_window_layers").value(m.layers);
  out.key("layer_types").list([&] {
    for (int64_t i = 0; i < m.layers; ++i) out.value(config::has_window(m, i) ? kSlidingAttention : kFullAttention);
  });
}

}  // namespace kintsugi::exchange
