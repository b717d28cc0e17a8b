#include "kintsugi/jobs/suspects.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/jobs/append_line.h"

namespace kintsugi::jobs {
namespace {

namespace fs = std::filesystem;

bool holds(const Suspect& s, int64_t now, const std::string& job) {
  return s.until > 0 ? now < s.until : s.job == job;
}

}  // namespace

std::vector<Suspect> read_suspects(const fs::path& folder) {
  constexpr base::MostBytes kMost = {size_t{64} << 20, "a list of suspect nodes"};
  const fs::path path = folder / kSuspectsFile;
  std::error_code error;
  std::vector<Suspect> suspects;
  if (!fs::exists(path, error)) return suspects;
  const std::string text = base::read_file(path, kMost);
  int64_t line = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = text.find('\n', at);
    if (end == std::string::npos) break;  // of an incomplete write
    const auto json = base::Json::parse("launch", path.string(), text.substr(at, end - at), ++line);
    at = end + 1;
    Suspect& s = suspects.emplace_back();
    s.node = json.at("node").text();
    s.since = json.at("since").whole();
    s.until = json.at("until").whole();
    s.why = json.at("why").text();
    if (const auto job = json.find("job")) s.job = job->text();
    if (const auto excluded = json.find("excluded")) s.excluded = excluded->boolean();
  }
  return suspects;
}

void add_suspect(const fs::path& folder, const Suspect& s) {
  base::JsonWriter json;
  json.object([&] {
    json.key("node").value(s.node);
    json.key("since").value(s.since);
    json.key("until").value(s.until);
    json.key("why").value(s.why);
    if (!s.job.empty()) json.key("job").value(s.job);
    if (!s.excluded) json.key("excluded").value(false);
  });
  append_line(folder / kSuspectsFile, json.text());
}

std::vector<Suspect> excluded(const std::vector<Suspect>& suspects, int64_t now, const std::string& job) {
  std::vector<Suspect> now_excluded;
  for (const Suspect& s : suspects) {
    if (!s.excluded || !holds(s, now, job)) continue;
    const auto found = std::ranges::find(now_excluded, s.node, &Suspect::node);
    if (found == now_excluded.end()) {
      now_excluded.push_back(s);
    } else {
      *found = s;
    }
  }
  return now_excluded;
}

bool repeated(const std::vector<Suspect>& suspects, const std::string& node, int64_t now, const std::string& job) {
  return std::ranges::any_of(suspects, [&](const Suspect& s) { return s.node == node && holds(s, now, job); });
}

}  // namespace kintsugi::jobs
