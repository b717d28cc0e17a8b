#include "kintsugi/jobs/site.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>
#include <set>
#include <system_error>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/toml_reader.h"

namespace kintsugi::jobs {
namespace {

using base::UserError;
using config::Raw;
namespace fs = std::filesystem;

struct Place {
  std::string_view path;
  std::string key;
  int line = 0;

  template <typename... T>
  [[noreturn]] void refuse(fmt::format_string<T...> format, T&&... values) const {
    throw UserError("job", "{}:{}: {} {}", path, line, key, fmt::format(format, std::forward<T>(values)...));
  }
};

std::string text_of(const Raw& raw, const Place& place) {
  if (raw.type != Raw::Type::text) place.refuse("is {}; it must be a text", raw.type_name());
  // Each becomes part of a line of a script.
  if (raw.text.find_first_of("\n\r\0", 0, 3) != std::string::npos) place.refuse("has more than one line");
  return raw.text;
}

int64_t count_of(const Raw& raw, const Place& place, int64_t least = 1) {
  constexpr int64_t kMost = 1'000'000;
  if (raw.type != Raw::Type::integer || raw.integer < least || raw.integer > kMost)
    place.refuse("must be an integer from {} to {}", least, kMost);
  return raw.integer;
}

std::vector<std::string> texts_of(const Raw& raw, const Place& place) {
  if (raw.type != Raw::Type::list) place.refuse("is {}; it must be a list of texts", raw.type_name());
  std::vector<std::string> texts;
  for (const Raw& item : raw.items) texts.push_back(text_of(item, place));
  return texts;
}

launch::Scheduler scheduler_of(const Raw& raw, const Place& place) {
  using enum launch::Scheduler;
  static const std::map<std::string, launch::Scheduler, std::less<>> kSchedulers = {
      {"none", none}, {"slurm", slurm}, {"pbs", pbs}, {"flux", flux}, {"kubernetes", kubernetes}};
  const auto found = kSchedulers.find(text_of(raw, place));
  if (found == kSchedulers.end()) place.refuse("is {}; there are slurm, pbs, flux, kubernetes, none", raw.shown());
  return found->second;
}

bool requeue_of(const Raw& raw, const Place& place) {
  const std::string text = text_of(raw, place);
  if (text != "requeue" && text != "resubmit") place.refuse("is {}; there are requeue, resubmit", raw.shown());
  return text == "requeue";
}

std::string storage_of(const Raw& raw, const Place& place) {
  std::string text = text_of(raw, place);
  if (text != "lustre" && text != "gpfs") place.refuse("is {}; there are lustre, gpfs", raw.shown());
  return text;
}

double hours_of(const Raw& raw, const Place& place) {
  const double hours = raw.type == Raw::Type::integer  ? static_cast<double>(raw.integer)
                       : raw.type == Raw::Type::number ? raw.number
                                                       : 0;
  if (!(hours > 0 && hours <= 10'000)) place.refuse("has a limit whose hours are not from 0 to 10,000");
  return hours;
}

// {limits = [[91, 2], [183, 6]], devices = 8}
Partition partition_of(const Raw& raw, const Place& place, const std::string& name) {
  if (raw.type != Raw::Type::table) place.refuse("must be a table: {{limits = [[NODES, HOURS]], devices = N}}");
  Partition partition;
  partition.name = name;
  for (size_t i = 0; i < raw.items.size(); ++i) {
    const Raw& value = raw.items[i];
    const Place at = {place.path, fmt::format("{}.{}", place.key, raw.names[i]), value.line ? value.line : place.line};
    if (raw.names[i] == "devices") {
      partition.devices = count_of(value, at, 0);
    } else if (raw.names[i] == "least_nodes") {
      partition.least_nodes = count_of(value, at);
    } else if (raw.names[i] == "limits" && value.type == Raw::Type::list) {
      for (const Raw& limit : value.items) {
        if (limit.type != Raw::Type::list || limit.items.size() != 2) at.refuse("must be a list of [NODES, HOURS]");
        partition.limits.push_back({count_of(limit.items[0], at), hours_of(limit.items[1], at)});
      }
      if (!std::ranges::is_sorted(partition.limits, {}, &Limit::nodes)) at.refuse("must be in order of nodes");
    } else {
      place.refuse("has an unknown key {}; there are limits, devices, least_nodes", raw.names[i]);
    }
  }
  return partition;
}

Setting setting_of(const Raw& raw, const Place& place, const std::string& name) {
  const auto good = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  if (!std::ranges::all_of(name, good)) place.refuse("is not the name of a variable");
  if (raw.type != Raw::Type::list || raw.items.size() != 2) place.refuse("must be [value, why it is needed]");
  return {name, text_of(raw.items[0], place), text_of(raw.items[1], place)};
}

struct Key {
  std::string_view section, name;
  std::function<void(Site&, const Raw&, const Place&)> read;
};

template <auto M>
Key text_key(std::string_view section, std::string_view name) {
  return {section, name, [](Site& s, const Raw& r, const Place& p) { s.*M = text_of(r, p); }};
}
template <auto M>
Key texts_key(std::string_view section, std::string_view name) {
  return {section, name, [](Site& s, const Raw& r, const Place& p) { s.*M = texts_of(r, p); }};
}
template <auto M>
Key count_key(std::string_view section, std::string_view name) {
  return {section, name, [](Site& s, const Raw& r, const Place& p) { s.*M = count_of(r, p, 0); }};
}

const std::vector<Key>& site_keys() {
  static const std::vector<Key> kKeys = {
      text_key<&Site::title>("site", "title"),
      {"site", "scheduler", [](Site& s, const Raw& r, const Place& p) { s.scheduler = scheduler_of(r, p); }},
      {"site", "again", [](Site& s, const Raw& r, const Place& p) { s.requeue = requeue_of(r, p); }},
      texts_key<&Site::directives>("site", "directives"),
      texts_key<&Site::modules>("site", "modules"),
      text_key<&Site::partition>("site", "partition"),
      {"site", "storage", [](Site& s, const Raw& r, const Place& p) { s.storage = storage_of(r, p); }},
      text_key<&Site::image>("site", "image"),
      text_key<&Site::claim>("site", "claim"),
      count_key<&Site::cores>("node", "cores"),
      count_key<&Site::ranks>("node", "ranks"),
      count_key<&Site::devices>("node", "devices"),
      text_key<&Site::vendor>("node", "vendor"),
      text_key<&Site::memory>("node", "memory"),
      text_key<&Site::launch>("launch", "command"),
      text_key<&Site::launch_devices>("launch", "devices"),
  };
  return kKeys;
}

constexpr std::array<std::string_view, 5> kSections = {"site", "node", "launch", "environment", "partitions"};

// Checks that the placeholders in `text` are known.
void check_places(std::string_view text, const Place& place) {
  constexpr std::array<std::string_view, 6> kPlaces = {"{nodes}", "{ranks}",   "{ranks_per_node}",
                                                       "{cores}", "{devices}", "{mpi}"};
  for (size_t at = text.find('{'); at != text.npos; at = text.find('{', at + 1)) {
    if (at > 0 && text[at - 1] == '$') continue;  // of the shell
    const std::string_view rest = text.substr(at);
    if (std::ranges::none_of(kPlaces, [&](std::string_view p) { return rest.starts_with(p); }))
      place.refuse("has {}; there are {}", rest.substr(0, rest.find('}') + 1), fmt::join(kPlaces, ", "));
  }
}

void read_entry(Site& site, const config::Entry& entry, std::string_view path) {
  const Place place = {path, fmt::format("{}.{}", entry.section, entry.key), entry.line};
  if (std::ranges::count(kSections, entry.section) == 0)
    throw UserError("job", "{}:{}: unknown section [{}]; there are [{}]", path, entry.line,
                    base::one_line(entry.section, 60), fmt::join(kSections, "], ["));
  if (entry.key.empty()) {
    if (entry.value.type != Raw::Type::table)
      throw UserError("job", "{}:{}: {} must be a section, written [{}]", path, entry.line, entry.section,
                      entry.section);
    return;
  }
  if (entry.section == "environment") {
    site.environment.push_back(setting_of(entry.value, place, entry.key));
    return;
  }
  if (entry.section == "partitions") {
    site.partitions.push_back(partition_of(entry.value, place, entry.key));
    return;
  }
  std::vector<std::string> names;
  for (const Key& key : site_keys()) {
    if (key.section != entry.section) continue;
    names.emplace_back(key.name);
    if (key.name != entry.key) continue;
    key.read(site, entry.value, place);
    if (entry.value.type == Raw::Type::text) check_places(entry.value.text, place);
    return;
  }
  throw UserError("job", "{}:{}: unknown key {}; [{}] has {}", path, entry.line, base::one_line(place.key, 80),
                  entry.section, fmt::join(names, ", "));
}

}  // namespace

Site read_site(std::string_view text, std::string_view path) {
  std::vector<config::Entry> entries;
  try {
    entries = config::read_toml(text, path);
  } catch (const UserError& e) {  // "[config] ..."
    const std::string_view what = e.what();
    throw UserError("job", "{}", what.substr(std::min(what.size(), what.find("] ") + 2)));
  }
  Site site;
  site.name = fs::path(path).stem().string();
  std::set<std::string> given;
  for (const config::Entry& entry : entries) {
    read_entry(site, entry, path);
    given.insert(entry.section + "." + entry.key);
  }
  for (const std::string_view needed : {"site.title", "site.scheduler", "launch.command"})
    if (given.count(std::string(needed)) == 0) throw UserError("job", "{}: {} is missing", path, needed);
  if (!site.partition.empty() && !site.partitions.empty() &&
      std::ranges::none_of(site.partitions, [&](const Partition& p) { return p.name == site.partition; }))
    throw UserError("job", "{}: site.partition is \"{}\", which [partitions] does not list", path, site.partition);
  return site;
}

std::vector<fs::path> site_folders() {
  std::error_code ignored;
  const fs::path here = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  std::vector<fs::path> folders = {"sites"};
  for (const fs::path& folder : {here, here.parent_path(), here.parent_path().parent_path()})
    folders.push_back(folder / "sites");
  return folders;
}

Site find_site(const std::string& name) {
  constexpr base::MostBytes kMost = {size_t{1} << 20, "a site"};
  if (name.ends_with(".toml") || name.find('/') != std::string::npos)
    return read_site(base::read_file(name, kMost), name);
  std::set<std::string> names;
  for (const fs::path& folder : site_folders()) {
    std::error_code error;
    const fs::path path = folder / (name + ".toml");
    if (fs::exists(path, error)) return read_site(base::read_file(path, kMost), path.string());
    for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error))
      if (i->path().extension() == ".toml") names.insert(i->path().stem().string());
  }
  if (names.empty())
    throw UserError("job", "--site {}: no folder sites/ here or next to the program; name the file of a site",
                    base::one_line(name, 60));
  throw UserError("job", "--site {}: unknown site; known sites: {}; or name the file of one", base::one_line(name, 60),
                  fmt::join(names, ", "));
}

}  // namespace kintsugi::jobs
