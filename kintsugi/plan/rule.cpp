#include "kintsugi/plan/rule.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {
namespace {

[[noreturn]] void fail(std::string_view rule, std::string_view what) {
  throw base::UserError("plan",
                        "rule \"{}\" {}; write \"dim [in family] -> axes [, padded] [, in steps]\", such as "
                        "\"embed in contract -> tensor, padded\"",
                        base::one_line(rule, 80), what);
}

// The words of each comma-separated part.
std::vector<std::vector<std::string>> parts_of(std::string_view text) {
  std::vector<std::vector<std::string>> parts;
  for (size_t end; (end = text.find(',')) != std::string_view::npos; text.remove_prefix(end + 1))
    parts.push_back(tensor::words(text.substr(0, end)));
  parts.push_back(tensor::words(text));
  return parts;
}

std::string shown(const std::vector<std::string>& words) {
  return base::one_line(fmt::format("\"{}\"", fmt::join(words, " ")), 60);
}

}  // namespace

Rule parse_rule(std::string_view text) {
  const size_t arrow = text.find("->");
  if (arrow == std::string_view::npos) fail(text, "has no \"->\"");
  const std::vector<std::string> left = tensor::words(text.substr(0, arrow));
  const auto parts = parts_of(text.substr(arrow + 2));

  Rule rule;
  if (left.empty()) fail(text, "names no dim");
  if (left.size() != 1 && !(left.size() == 3 && left[1] == "in"))
    fail(text, fmt::format("begins with {}, which is neither a dim nor \"dim in family\"", shown(left)));
  rule.dim = left[0];
  if (left.size() == 3) rule.family = left[2];

  if (parts[0].empty()) fail(text, "names no axis");
  rule.axes = parts[0];
  for (const std::string& axis : rule.axes)
    if (std::count(rule.axes.begin(), rule.axes.end(), axis) > 1)
      fail(text, fmt::format("names axis {} twice", shown({axis})));
  for (size_t i = 1; i < parts.size(); ++i) {
    if (parts[i] == std::vector<std::string>{"padded"}) {
      rule.pad = true;
    } else if (parts[i] == std::vector<std::string>{"in", "steps"}) {
      rule.steps = true;
    } else {
      fail(text, fmt::format("ends in {}, which is neither \"padded\" nor \"in steps\"", shown(parts[i])));
    }
  }
  return rule;
}

std::string to_string(const Rule& rule) {
  return fmt::format("{}{}{} -> {}{}{}", rule.dim, rule.family.empty() ? "" : " in ", rule.family,
                     fmt::join(rule.axes, " "), rule.pad ? ", padded" : "", rule.steps ? ", in steps" : "");
}

}  // namespace kintsugi::plan
