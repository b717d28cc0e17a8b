#include "kintsugi/config/resume.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/resolve.h"

namespace kintsugi::config {
namespace {

constexpr int kMostShown = 4;  // changes listed in a message
constexpr size_t kLongestShown = 40;

bool left_open(const Key& key, const Resolved& now) {
  const std::vector<std::string> open = sizes_of_data(now);
  return std::ranges::find(open, key.full_name()) != open.end();
}

bool is_given(const Key& key, const Resolved& now) {
  return now.origin(key.full_name()).given();
}

// The value without paths: how many there are, their weights, their domains.
Value without_paths(Value value) {
  const auto clear_paths = [](auto& files) {
    for (auto& file : files) file.path.clear();
  };
  if (auto* sources = std::get_if<std::vector<DataSource>>(&value)) clear_paths(*sources);
  if (auto* files = std::get_if<std::vector<ValidationFile>>(&value)) clear_paths(*files);
  if (auto* path = std::get_if<std::string>(&value)) *path = path->empty() ? "" : "given";
  return value;
}

bool refused(const Key& key, const Resolved& saved, const Resolved& now) {
  const Value before = key.get(saved.settings), after = key.get(now.settings);
  if (key.resume == Resume::moved) return without_paths(before) != without_paths(after);
  const bool bound = key.resume == Resume::fixed || (key.resume == Resume::held && is_given(key, now));
  return bound && !left_open(key, now) && before != after;
}

}  // namespace

std::vector<std::string> compare_for_resume(const Resolved& saved, const Resolved& now) {
  std::vector<std::string> changed;
  for (const Key& key : keys())
    if (refused(key, saved, now)) changed.push_back(key.full_name());
  return changed;
}

Resolved resume_with(const Resolved& saved, Resolved now) {
  std::string changes, where;
  int count = 0;
  for (size_t i = 0; i < keys().size(); ++i) {
    const Key& key = keys()[i];
    if (refused(key, saved, now)) {
      const auto shown = [&](const Resolved& r) { return base::one_line(to_toml(key.get(r.settings)), kLongestShown); };
      if (++count <= kMostShown)
        changes +=
            fmt::format("{}{} is {}, was {}", changes.empty() ? "" : "; ", key.full_name(), shown(now), shown(saved));
      if (where.empty() && now.origins[i].given()) where = now.origins[i].text() + ": ";
    }
    const bool keeps = (key.resume == Resume::kept || key.resume == Resume::held) && !is_given(key, now);
    if (keeps || left_open(key, now)) {
      key.set(now.settings, key.get(saved.settings));
      now.origins[i] = {Origin::Kind::saved, ""};
    }
  }
  if (count > kMostShown) changes += fmt::format("; and {} more", count - kMostShown);
  if (!changes.empty())
    throw base::UserError("resume",
                          "{}{}; a resumed run keeps these settings: set them back, or train in another folder", where,
                          changes);
  return now;
}

}  // namespace kintsugi::config
