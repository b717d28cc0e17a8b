#include "kintsugi/models/freeze.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/models/lora.h"

namespace kintsugi::models {

using graph::State;
using graph::StateId;
using graph::StateKind;

namespace {

// "layer12.ffn.up" -> "layer*.ffn.up"
std::string without_numbers(std::string_view name) {
  std::string text;
  for (const char c : name) {
    const bool digit = std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (!digit) text += c;
    if (digit && !text.ends_with('*')) text += '*';
  }
  return text;
}

// Between the pattern and the closest suffix of the name; for a pattern of one word, or the closest word.
int distance(std::string_view pattern, std::string_view name) {
  const bool is_word = pattern.find('.') == pattern.npos;
  int least = base::edit_distance(pattern, name);
  for (size_t begin = 0; begin < name.size();) {
    const size_t dot = std::min(name.find('.', begin), name.size());
    least = std::min(least, base::edit_distance(pattern, name.substr(begin)));
    if (is_word) least = std::min(least, base::edit_distance(pattern, name.substr(begin, dot - begin)));
    begin = dot + 1;
  }
  return least;
}

}  // namespace

bool matches_all(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return name.empty();
  if (pattern.front() != '*')
    return !name.empty() && name.front() == pattern.front() && matches_all(pattern.substr(1), name.substr(1));
  for (size_t taken = 0; taken <= name.size(); ++taken)
    if (matches_all(pattern.substr(1), name.substr(taken))) return true;
  return false;
}

bool matches_beginning(std::string_view pattern, std::string_view name) {
  if (pattern.empty()) return false;
  if (matches_all(pattern, name)) return true;
  for (size_t dot = name.find('.'); dot != name.npos; dot = name.find('.', dot + 1))
    if (matches_all(pattern, name.substr(0, dot))) return true;
  return false;
}

std::string nearest_names(std::string_view pattern, std::span<const std::string> names) {
  constexpr size_t kMost = 3;
  std::vector<std::pair<int, std::string>> all;
  for (const std::string& name : names) {
    std::string general = without_numbers(name);
    if (std::ranges::none_of(all, [&](const auto& entry) { return entry.second == general; }))
      all.emplace_back(distance(pattern, name), std::move(general));
  }
  std::ranges::stable_sort(all, {}, &std::pair<int, std::string>::first);
  std::vector<std::string_view> nearest;
  for (const auto& [far, name] : all)
    if (nearest.size() < kMost) nearest.push_back(name);
  return nearest.empty() ? "" : fmt::format("; nearest: {}", fmt::join(nearest, ", "));
}

void freeze(graph::StateTable& states, const config::Settings& s) {
  std::vector<StateId> weights;
  std::vector<std::string> names;
  for (size_t i = 0; i < states.size(); ++i)
    if (const auto id = static_cast<StateId>(i); states[id].kind == StateKind::weight) {
      weights.push_back(id);
      names.push_back(states[id].name);
    }
  for (const std::string& pattern : s.train.freeze) {
    bool any = false;
    for (const StateId id : weights)
      if (matches_beginning(pattern, states[id].name)) {
        states.freeze(id);
        any = true;
      }
    if (!any)
      throw base::UserError("model", "train.freeze: no weight matches \"{}\"{}", base::one_line(pattern, 60),
                            nearest_names(pattern, names));
  }
  if (s.lora.rank > 0) {
    require_targets(states, s.lora);
    for (const StateId id : weights) {
      const std::string& name = states[id].name;
      const bool is_new =
          std::ranges::any_of(s.train.init_new, [&](const std::string& begin) { return name.starts_with(begin); });
      if (is_new && frozen_dtype(s.lora) == states[id].type.dtype &&
          states[id].type.dtype != tensor::dtype_from(s.train.dtype))
        throw base::UserError("model",
                              "train.init_new trains \"{}\", which lora.frozen_dtype = \"{}\" stores without an fp32 "
                              "copy; leave one out",
                              name, s.lora.frozen_dtype);
      if (!is_adapter(name) && !is_new) states.freeze(id);
    }
  }
  if (std::ranges::all_of(weights, [&](StateId id) { return states[id].frozen; }))
    throw base::UserError("model", "train.freeze: all {} weights are frozen; leave some to train", weights.size());
}

}  // namespace kintsugi::models
