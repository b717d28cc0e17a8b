// Finds keys by name, by former name, or by what a user may have meant.
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "kintsugi/base/error.h"
#include "kintsugi/config/keys.h"

namespace kintsugi::config {
namespace {

// Edit distance of at most a third of the length, and at least one.
bool near(std::string_view word, std::string_view candidate) {
  const int most = std::max<int>(1, static_cast<int>(word.size()) / 3);
  return word.size() < 64 && base::edit_distance(word, candidate) <= most;
}

std::string lower(std::string_view word) {
  std::string result(word);
  std::ranges::transform(result, result.begin(), [](unsigned char c) { return c == '-' ? '_' : std::tolower(c); });
  return result;
}

bool has_word(std::string_view words, std::string_view word) {
  return fmt::format(" {} ", words).find(fmt::format(" {} ", word)) != std::string::npos;
}

}  // namespace

int find_key(std::string_view section, std::string_view name) {
  for (size_t i = 0; i < keys().size(); ++i)
    if (keys()[i].section == section && keys()[i].name == name) return static_cast<int>(i);
  return -1;
}

const RenamedKey* renamed_key(std::string_view section, std::string_view name) {
  static constexpr RenamedKey kRenamed[] = {{"train", "kernels", "parallel.device"}};
  for (const RenamedKey& key : kRenamed)
    if (key.section == section && key.name == name) return &key;
  return nullptr;
}

int key_index(std::string_view full_name) {
  const size_t dot = full_name.find('.');
  base::require(dot != std::string_view::npos, "config", "{} is not a key name", full_name);
  const int index = find_key(full_name.substr(0, dot), full_name.substr(dot + 1));
  base::require(index >= 0, "config", "there is no key {}", full_name);
  return index;
}

std::string default_text(const Key& key) {
  if (!key.rule.empty()) return std::string(key.rule);
  const std::string value = to_toml(key.get(Settings{}));
  return value == "\"\"" ? "none" : value;
}

namespace {

// What other programs call our values.
struct OtherName {
  std::string_view other, ours;
};
constexpr OtherName kOtherNames[] = {
    {"gpu", "cuda"},     {"bfloat16", "bf16"}, {"bfloat", "bf16"}, {"float16", "fp16"}, {"half", "fp16"},
    {"f16", "fp16"},     {"float32", "fp32"},  {"float", "fp32"},  {"single", "fp32"},  {"f32", "fp32"},
    {"float64", "fp64"}, {"double", "fp64"},   {"f64", "fp64"},
};

}  // namespace

std::string meant_word(std::string_view word, const std::vector<std::string_view>& words) {
  if (word.empty()) return "";
  std::string small = lower(word);
  if (const size_t dot = small.rfind('.'); dot != small.npos) small.erase(0, dot + 1);  // torch.bfloat16
  for (const OtherName& name : kOtherNames)
    if (small == name.other && std::ranges::count(words, name.ours) > 0) return std::string(name.ours);
  const std::string best = base::nearest(small, words);
  return near(small, best) ? best : "";
}

std::string meant_key(std::string_view section, std::string_view word) {
  if (word.empty()) return "";
  const std::string small = lower(word);
  const auto found = [&](const Key& key) { return key.section == section ? std::string(key.name) : key.full_name(); };
  for (const bool here : {true, false})
    for (const Key& key : keys())
      if ((key.section == section) == here && (key.name == small || has_word(key.others, small))) return found(key);
  for (const bool here : {true, false}) {
    const Key* best = nullptr;
    int least = 1 << 30;
    for (const Key& key : keys()) {
      if ((key.section == section) != here || !near(small, key.name)) continue;
      const int distance = base::edit_distance(small, key.name);
      if (distance < least) {
        least = distance;
        best = &key;
      }
    }
    if (best) return found(*best);
  }
  return "";
}

}  // namespace kintsugi::config
