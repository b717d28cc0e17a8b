#include "kintsugi/sweep/spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/toml_reader.h"

namespace kintsugi::sweep {
namespace {

using base::UserError;
using config::Raw;

constexpr int64_t kMostRuns = 100'000;

// A value of the file, for messages.
struct At {
  std::string_view file;
  std::string key;
  int line;

  template <typename... T>
  [[noreturn]] void refuse(fmt::format_string<T...> format, T&&... values) const {
    throw UserError("sweep", "{}:{}: {} {}", file, line, key, fmt::format(format, std::forward<T>(values)...));
  }
};

std::string text_of(const Raw& raw, const At& at) {
  if (raw.type != Raw::Type::text || raw.text.empty()) at.refuse("must be a text");
  return raw.text;
}

int64_t integer_of(const Raw& raw, const At& at, int64_t least, int64_t most = int64_t{1} << 40) {
  if (raw.type != Raw::Type::integer || raw.integer < least || raw.integer > most)
    at.refuse("must be an integer from {} to {}", least, most);
  return raw.integer;
}

double number_of(const Raw& raw, const At& at) {
  if (raw.type == Raw::Type::integer) return static_cast<double>(raw.integer);
  if (raw.type != Raw::Type::number || !std::isfinite(raw.number)) at.refuse("must be a number");
  return raw.number;
}

// In the syntax of --set.
std::string value_of(const Raw& raw, const At& at) {
  switch (raw.type) {
    case Raw::Type::boolean:
      return raw.boolean ? "true" : "false";
    case Raw::Type::integer:
      return fmt::format("{}", raw.integer);
    case Raw::Type::number:
      return fmt::format("{}", raw.number);
    case Raw::Type::text:
      return raw.text;
    default:
      at.refuse("is {}; a value must be a number, a text, true or false", raw.type_name());
  }
}

Dimension range_of(const Raw& raw, const At& at) {
  Dimension d;
  bool from = false, to = false;
  d.whole = true;
  for (size_t i = 0; i < raw.items.size(); ++i) {
    const Raw& item = raw.items[i];
    const std::string& name = raw.names[i];
    if (name == "scale") {
      const std::string scale = text_of(item, at);
      if (scale != "log" && scale != "linear") at.refuse("has the scale \"{}\"; known scales: log, linear", scale);
      d.log = scale == "log";
      continue;
    }
    if (name != "from" && name != "to" && name != "step")
      at.refuse("has an unknown part \"{}\"; a range is {{from = A, to = B}}, with step = S or scale = \"log\"",
                base::one_line(name, 40));
    const double number = number_of(item, at);
    d.whole &= item.type == Raw::Type::integer;
    (name == "from" ? d.from : name == "to" ? d.to : d.step) = number;
    (name == "from" ? from : name == "to" ? to : from) |= name != "step";
    if (name == "step" && !(number > 0)) at.refuse("has a step of {}; it must be above 0", number);
  }
  if (!from || !to) at.refuse("needs both from and to");
  if (!(d.from < d.to)) at.refuse("goes from {} to {}; from must be below to", d.from, d.to);
  if (d.log && !(d.from > 0)) at.refuse("begins at {}; a logarithmic scale needs from above 0", d.from);
  if (d.log && d.step > 0) at.refuse("has a step and a logarithmic scale; leave one out");
  return d;
}

void require_key(const std::string& key, const At& at) {
  const size_t dot = key.find('.');
  if (dot != std::string::npos && config::find_key(key.substr(0, dot), key.substr(dot + 1)) >= 0) return;
  const std::string meant = dot == std::string::npos ? "" : config::meant_key(key.substr(0, dot), key.substr(dot + 1));
  at.refuse("is not a key of run.toml{}", meant.empty()
                                              ? "; kintsugi check --keys lists them"
                                              : fmt::format("; did you mean \"{}.{}\"?", key.substr(0, dot), meant));
}

// Calls f("train.steps", value, line) for `"train.steps" = ...` and for `train.steps = ...`, which TOML parses as a
// table.
void each_key(const config::Entry& entry, const std::function<void(const std::string&, const Raw&, int)>& f) {
  if (entry.key.find('.') == std::string::npos && entry.value.type == Raw::Type::table)
    for (size_t i = 0; i < entry.value.items.size(); ++i)
      f(entry.key + "." + entry.value.names[i], entry.value.items[i], entry.line);
  else
    f(entry.key, entry.value, entry.line);
}

void read_sweep_key(Spec& spec, const config::Entry& e, const At& at) {
  const Raw& raw = e.value;
  const auto text = [&](std::string Spec::*to) { spec.*to = text_of(raw, at); };
  const auto integer = [&](int64_t Spec::*to, int64_t least) { spec.*to = integer_of(raw, at, least); };
  if (e.key == "run") return text(&Spec::run);
  if (e.key == "folder") return text(&Spec::folder);
  if (e.key == "measure") return text(&Spec::measure);
  if (e.key == "with") return text(&Spec::with);
  if (e.key == "trials") return integer(&Spec::trials, 1);
  if (e.key == "ranks") return integer(&Spec::ranks, 1);
  if (e.key == "seed") return integer(&Spec::seed, 0);
  if (e.key == "restarts") return integer(&Spec::restarts, 0);
  if (e.key == "eta") return integer(&Spec::eta, 2);
  if (e.key == "first_steps") return integer(&Spec::first_steps, 1);
  if (e.key == "goal") {
    const std::string goal = text_of(raw, at);
    if (goal != "min" && goal != "max") at.refuse("is \"{}\"; it must be min or max", base::one_line(goal, 40));
    spec.maximize = goal == "max";
    return;
  }
  if (e.key == "method") {
    const std::string method = text_of(raw, at);
    for (const Method m : {Method::grid, Method::random, Method::halving, Method::population})
      if (name_of(m) == method) return void(spec.method = m);
    at.refuse("is \"{}\"; known methods: grid, random, halving, population", base::one_line(method, 40));
  }
  at.refuse(
      "is not a key of [sweep]; known keys: run, folder, method, trials, ranks, seed, measure, goal, restarts, with, "
      "eta, first_steps");
}

// Uniform in [0, 1): SplitMix64 over seed, trial and dimension.
double uniform(int64_t seed, int64_t trial, int64_t dimension) {
  uint64_t x = static_cast<uint64_t>(seed) * 0x9E3779B97F4A7C15u + static_cast<uint64_t>(trial) * 0xD1B54A32D192ED03u +
               static_cast<uint64_t>(dimension) * 0x8CB92BA72F3D8DD7u + 0x9E3779B97F4A7C15u;
  for (int i = 0; i < 2; ++i) {
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    x ^= x >> 31;
  }
  return static_cast<double>(x >> 11) * 0x1p-53;
}

std::string shown(const Dimension& d, double value) {
  if (d.whole) return fmt::format("{}", std::llround(value));
  return fmt::format("{:.6g}", value);
}

int64_t steps_of(const Dimension& d) {
  return static_cast<int64_t>(std::floor((d.to - d.from) / d.step + 1e-9)) + 1;
}

std::string draw(const Dimension& d, double u) {
  if (!d.is_range()) return d.values[static_cast<size_t>(u * static_cast<double>(d.values.size()))];
  if (d.step > 0) return shown(d, d.from + d.step * std::floor(u * static_cast<double>(steps_of(d))));
  if (d.log) return shown(d, d.from * std::pow(d.to / d.from, u));
  if (d.whole) return shown(d, d.from + std::floor(u * (d.to - d.from + 1)));
  return shown(d, d.from + u * (d.to - d.from));
}

// The values of a dimension of a grid.
std::vector<std::string> listed(const Dimension& d) {
  if (!d.is_range()) return d.values;
  if (d.step == 0)
    throw UserError("sweep", "{} is a range without a step; a grid needs one, or a list of values", d.key);
  if (steps_of(d) > kMostRuns)
    throw UserError("sweep", "{} has {} values; at most {} are possible", d.key, steps_of(d), kMostRuns);
  std::vector<std::string> values;
  for (int64_t i = 0; i < steps_of(d); ++i) values.push_back(shown(d, d.from + d.step * static_cast<double>(i)));
  return values;
}

std::vector<Values> grid(const Spec& spec) {
  std::vector<Values> all = {{}};
  for (const Dimension& d : spec.search) {
    const std::vector<std::string> values = listed(d);
    if (static_cast<int64_t>(all.size() * values.size()) > kMostRuns)
      throw UserError("sweep", "the grid has more than {} runs; search fewer values, or set method = \"random\"",
                      kMostRuns);
    std::vector<Values> longer;
    for (const Values& begun : all)
      for (const std::string& value : values) {
        longer.push_back(begun);
        longer.back().emplace_back(d.key, value);
      }
    all = std::move(longer);
  }
  return all;
}

std::vector<Values> drawn(const Spec& spec) {
  std::vector<Values> all;
  std::set<Values> seen;
  // Small spaces repeat: the sweep then has fewer runs than requested.
  for (int64_t trial = 0; trial < 20 * spec.trials && std::ssize(all) < spec.trials; ++trial) {
    Values values;
    for (size_t d = 0; d < spec.search.size(); ++d)
      values.emplace_back(spec.search[d].key, draw(spec.search[d], uniform(spec.seed, trial, static_cast<int64_t>(d))));
    if (seen.insert(values).second) all.push_back(std::move(values));
  }
  return all;
}

}  // namespace

std::string_view name_of(Method method) {
  switch (method) {
    case Method::grid:
      return "grid";
    case Method::random:
      return "random";
    case Method::halving:
      return "halving";
    case Method::population:
      return "population";
  }
  return "";
}

// A run of a population changes its values while it trains.
void require_changeable(const Spec& spec, std::string_view name) {
  for (const Dimension& d : spec.search) {
    const config::Resume resume = config::keys()[static_cast<size_t>(config::key_index(d.key))].resume;
    if (resume != config::Resume::free && resume != config::Resume::kept)
      throw UserError("sweep",
                      "{}: {} cannot change during a run; a population searches keys that a resumed run may change, as "
                      "train.learning_rate",
                      name, d.key);
  }
}

Spec read_spec(std::string_view text, std::string_view name) {
  Spec spec;
  std::set<std::string> keys;
  for (const config::Entry& e : config::read_toml(text, name)) {
    const At at = {name, e.section + "." + e.key, e.line};
    if (e.section != "sweep" && e.section != "set" && e.section != "search")
      throw UserError("sweep", "{}:{}: unknown section [{}]; known sections: [sweep], [set], [search]", name, e.line,
                      base::one_line(e.section, 40));
    if (e.key.empty()) continue;
    if (e.section == "sweep") {
      read_sweep_key(spec, e, at);
      continue;
    }
    each_key(e, [&](const std::string& key, const Raw& raw, int line) {
      const At here = {name, key, line};
      require_key(key, here);
      if (key == "train.folder") here.refuse("is set by the sweep: each run gets its own folder");
      if (!keys.insert(key).second) here.refuse("is given twice");
      if (e.section == "set") return void(spec.set.emplace_back(key, value_of(raw, here)));
      Dimension d;
      if (raw.type == Raw::Type::table) {
        d = range_of(raw, here);
      } else if (raw.type == Raw::Type::list) {
        for (const Raw& item : raw.items) d.values.push_back(value_of(item, here));
        if (d.values.empty()) here.refuse("has no values");
      } else {
        here.refuse("must be a list of values, or a range {{from = A, to = B}}; a single value belongs to [set]");
      }
      d.key = key;
      spec.search.push_back(std::move(d));
    });
  }
  if (spec.folder.empty()) throw UserError("sweep", "{}: sweep.folder is not given; runs and results go there", name);
  if (spec.search.empty()) throw UserError("sweep", "{}: [search] has no keys; name those that vary", name);
  if (spec.method != Method::grid && spec.trials == 0)
    throw UserError("sweep", "{}: method = \"{}\" needs trials, the number of runs", name, name_of(spec.method));
  if (spec.method == Method::grid && spec.trials != 0)
    throw UserError("sweep", "{}: trials is for random, halving and population; a grid runs all combinations", name);
  if (spec.method == Method::population) {
    require_changeable(spec, name);
    if (spec.trials < 2) throw UserError("sweep", "{}: a population needs trials = 2 or more", name);
  }
  if (spec.trials > kMostRuns)
    throw UserError("sweep", "{}: trials = {}; at most {} are possible", name, spec.trials, kMostRuns);
  return spec;
}

std::vector<Values> candidates(const Spec& spec) {
  return spec.method == Method::grid ? grid(spec) : drawn(spec);
}

double uniform_of(const Spec& spec, int64_t trial, int64_t dimension) {
  return uniform(spec.seed, trial, dimension);
}

Values perturbed(const Spec& spec, const Values& other, int64_t trial, int64_t round) {
  constexpr double kLess = 0.8, kMore = 1.25;
  Values values = other;
  for (size_t i = 0; i < spec.search.size(); ++i) {
    const Dimension& d = spec.search[i];
    const bool up = uniform(spec.seed, trial, (round + 1) * 1000 + static_cast<int64_t>(i)) >= 0.5;
    std::string& value = values[i].second;
    if (!d.is_range()) {
      const auto at = std::ranges::find(d.values, value) - d.values.begin();
      const auto next = std::clamp<std::ptrdiff_t>(at + (up ? 1 : -1), 0, std::ssize(d.values) - 1);
      value = d.values[static_cast<size_t>(next)];
      continue;
    }
    const double before = std::stod(value);
    double after = before * (up ? kMore : kLess);
    if (d.whole && std::llround(after) == std::llround(before)) after = before + (up ? 1 : -1);
    if (d.step > 0) after = d.from + d.step * std::round((after - d.from) / d.step);
    value = shown(d, std::clamp(after, d.from, d.to));
  }
  return values;
}

std::vector<int64_t> rungs(const Spec& spec, int64_t steps) {
  if (spec.method == Method::population) {
    const int64_t each = spec.first_steps > 0 ? spec.first_steps : std::max<int64_t>(1, steps / 10);
    std::vector<int64_t> all;
    for (int64_t step = each; step < steps; step += each) all.push_back(step);
    all.push_back(steps);
    return all;
  }
  if (spec.method != Method::halving) return {steps};
  const int64_t first = spec.first_steps > 0 ? spec.first_steps : std::max<int64_t>(1, steps / (spec.eta * spec.eta));
  std::vector<int64_t> all;
  for (int64_t step = first; step < steps; step *= spec.eta) all.push_back(step);
  all.push_back(steps);
  return all;
}

}  // namespace kintsugi::sweep
