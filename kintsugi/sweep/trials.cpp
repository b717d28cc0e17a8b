#include "kintsugi/sweep/trials.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"

namespace kintsugi::sweep {
namespace {

namespace fs = std::filesystem;

// Lower is better.
double cost(const Sweep& sweep, double result) {
  return sweep.maximize ? -result : result;
}

bool is_done(const Trial& trial, size_t rung) {
  return !trial.failed.empty() || trial.results.size() > rung;
}

}  // namespace

std::vector<int64_t> members(const Sweep& sweep, size_t rung) {
  std::vector<int64_t> all;
  if (rung == 0) {
    for (int64_t t = 0; t < std::ssize(sweep.trials); ++t) all.push_back(t);
    return all;
  }
  if (sweep.population && sweep.exchanges < rung) return {};
  const std::vector<int64_t> before = members(sweep, rung - 1);
  for (const int64_t t : before) {
    const Trial& trial = sweep.trials[static_cast<size_t>(t)];
    if (!is_done(trial, rung - 1)) return {};
    if (trial.results.size() >= rung) all.push_back(t);
  }
  if (sweep.population) return all;
  std::ranges::stable_sort(
      all, {}, [&](int64_t t) { return cost(sweep, sweep.trials[static_cast<size_t>(t)].results[rung - 1]); });
  const size_t kept = std::max<size_t>(1, before.size() / static_cast<size_t>(sweep.eta));
  if (all.size() > kept) all.resize(kept);
  std::ranges::sort(all);
  return all;
}

std::vector<Work> work(const Sweep& sweep) {
  for (size_t rung = 0; rung < sweep.rungs.size(); ++rung) {
    std::vector<Work> left;
    for (const int64_t t : members(sweep, rung))
      if (!is_done(sweep.trials[static_cast<size_t>(t)], rung)) left.push_back({t, sweep.rungs[rung], rung});
    if (!left.empty()) return left;
  }
  return {};
}

bool exchange_is_due(const Sweep& sweep) {
  const size_t rung = sweep.exchanges;
  if (!sweep.population || rung + 1 >= sweep.rungs.size()) return false;
  return std::ranges::all_of(sweep.trials, [&](const Trial& t) { return is_done(t, rung); });
}

std::vector<Exchange> exchange(const Spec& spec, const Sweep& sweep) {
  const size_t rung = sweep.exchanges;
  std::vector<int64_t> all;
  for (int64_t t = 0; t < std::ssize(sweep.trials); ++t)
    if (const Trial& trial = sweep.trials[static_cast<size_t>(t)]; trial.failed.empty() && trial.results.size() > rung)
      all.push_back(t);
  std::ranges::stable_sort(all, {},
                           [&](int64_t t) { return cost(sweep, sweep.trials[static_cast<size_t>(t)].results[rung]); });
  std::vector<Exchange> exchanges;
  if (all.size() < 2) return exchanges;
  const size_t quarter = std::max<size_t>(1, all.size() / 4);
  const auto round = static_cast<int64_t>(rung);
  for (size_t i = all.size() - quarter; i < all.size(); ++i) {
    const double u = uniform_of(spec, all[i], (round + 1) * 1000 + 999);
    const int64_t parent = all[static_cast<size_t>(u * static_cast<double>(quarter))];
    exchanges.push_back(
        {all[i], parent, perturbed(spec, sweep.trials[static_cast<size_t>(parent)].values, all[i], round)});
  }
  return exchanges;
}

void apply(const std::vector<Exchange>& exchanges, Sweep& sweep) {
  for (const Exchange& e : exchanges) {
    Trial& trial = sweep.trials[static_cast<size_t>(e.trial)];
    if (trial.first.empty()) trial.first = trial.values;
    trial.values = e.values;
    trial.parents.push_back(e.parent);
  }
  ++sweep.exchanges;
}

std::vector<int64_t> ranking(const Sweep& sweep) {
  std::vector<int64_t> all = members(sweep, 0);
  std::ranges::stable_sort(all, {}, [&](int64_t t) {
    const auto& results = sweep.trials[static_cast<size_t>(t)].results;
    return std::tuple(-std::ssize(results), results.empty() ? 0.0 : cost(sweep, results.back()));
  });
  return all;
}

int64_t steps_trained(const Sweep& sweep) {
  int64_t steps = 0;
  for (const Trial& trial : sweep.trials)
    if (!trial.results.empty()) steps += sweep.rungs[trial.results.size() - 1];
  return steps;
}

void write_sweep(const fs::path& folder, const Sweep& sweep) {
  base::JsonWriter out(1);
  out.object([&] {
    out.key("measure").value(sweep.measure);
    out.key("goal").value(sweep.maximize ? "max" : "min");
    out.key("eta").value(sweep.eta);
    out.key("rungs").list([&] {
      for (const int64_t steps : sweep.rungs) out.value(steps);
    });
    if (sweep.population) out.key("exchanges").value(sweep.exchanges);
    out.key("runs").list([&] {
      for (const Trial& trial : sweep.trials)
        out.object([&] {
          out.key("values").object([&] {
            for (const auto& [key, value] : trial.first.empty() ? trial.values : trial.first) out.key(key).value(value);
          });
          if (!trial.first.empty()) {
            out.key("now").object([&] {
              for (const auto& [key, value] : trial.values) out.key(key).value(value);
            });
            out.key("parents").list([&] {
              for (const int64_t parent : trial.parents) out.value(parent);
            });
          }
          out.key("results").list([&] {
            for (const double result : trial.results) out.value(result);
          });
          out.key("failures").value(trial.failures);
          if (!trial.failed.empty()) out.key("failed").value(trial.failed);
        });
    });
  });
  base::write_file_atomically(folder / kStateFile, out.text() + "\n");
}

std::optional<Sweep> read_sweep(const fs::path& folder, const Sweep& now) {
  const fs::path path = folder / kStateFile;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto json = base::Json::parse("sweep", path.string(), base::read_file(path));
  const auto other = [&](const base::Json& at, std::string_view what) {
    at.fail("the sweep in {} was begun with other {}; set another sweep.folder, or remove it", folder.string(), what);
  };
  Sweep sweep = now;
  sweep.measure = json.at("measure").text();
  if (!now.measure.empty() && sweep.measure != now.measure && !sweep.measure.empty())
    other(json.at("measure"), "measures");
  if ((json.at("goal").text() == "max") != now.maximize) other(json.at("goal"), "goals");
  if (json.at("eta").whole() != now.eta) other(json.at("eta"), "values of eta");
  std::vector<int64_t> rungs;
  for (const auto& steps : json.at("rungs").list()) rungs.push_back(steps.whole(1));
  if (rungs != now.rungs) other(json.at("rungs"), "steps");
  if (const auto exchanges = json.find("exchanges")) sweep.exchanges = static_cast<size_t>(exchanges->whole());
  if (sweep.exchanges >= rungs.size()) json.at("exchanges").refuse("below the number of rungs");
  const auto runs = json.at("runs").list();
  if (runs.size() != now.trials.size()) other(json.at("runs"), "runs");
  size_t t = 0;
  for (const auto& run : runs) {
    Trial& trial = sweep.trials[t++];
    Values values;
    for (const auto& value : run.at("values").members()) values.emplace_back(value.key(), value.text());
    if (values != trial.values) other(run, "runs");
    if (const auto now = run.find("now")) {
      trial.first = std::exchange(trial.values, {});
      for (const auto& value : now->members()) trial.values.emplace_back(value.key(), value.text());
      for (const auto& parent : run.at("parents").list()) trial.parents.push_back(parent.whole());
      if (trial.values.size() != trial.first.size()) run.at("now").refuse("a value for each key");
    }
    for (const auto& result : run.at("results").list()) trial.results.push_back(result.number());
    if (trial.results.size() > rungs.size()) run.at("results").refuse("at most as long as the list of rungs");
    trial.failures = run.at("failures").whole();
    if (const auto failed = run.find("failed")) trial.failed = failed->text();
  }
  if (sweep.measure.empty()) sweep.measure = now.measure;
  return sweep;
}

}  // namespace kintsugi::sweep
