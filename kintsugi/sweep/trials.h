// The runs of a sweep and their state: which run next, and which are best. Saved in sweep.json.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/sweep/spec.h"

namespace kintsugi::sweep {

inline constexpr const char* kStateFile = "sweep.json";

struct Trial {
  Values values = {};                 // now: a run of a population changes them
  Values first = {};                  // at its start; empty: they have not changed
  std::vector<int64_t> parents = {};  // of a population: the trials whose weights it took over, in order
  std::vector<double> results = {};   // the measure at the end of each completed rung; finite
  int64_t failures = 0;               // attempts that ended with an error
  std::string failed = {};            // why it is not retried; "": it may be
};

struct Sweep {
  std::string measure;  // "": unknown until a run reaches the end of a rung
  bool maximize = false;
  int64_t eta = 3;
  bool population = false;
  size_t exchanges = 0;        // of a population: rungs after which weights were exchanged
  std::vector<int64_t> rungs;  // steps, ascending
  std::vector<Trial> trials;   // by number
};

// A run to train up to a step.
struct Work {
  int64_t trial = 0;
  int64_t until = 0;
  size_t rung = 0;

  bool operator==(const Work&) const = default;
};

// The trials of a rung, ascending: all in the first; in the others the best 1 / eta, at least one, of those that
// reached the end of the previous rung, ties by number. Empty until the previous rung is complete. Of a population: all
// that reached it, once weights were exchanged.
std::vector<int64_t> members(const Sweep& sweep, size_t rung);

// The remaining work of the first incomplete rung, by trial; empty: the sweep is done.
std::vector<Work> work(const Sweep& sweep);

// A trial of a population that takes over the weights and perturbed values of a better one.
struct Exchange {
  int64_t trial = 0, parent = 0;
  Values values = {};
};
// Whether a rung of a population is complete, and its exchange is due.
bool exchange_is_due(const Sweep& sweep);
// The worst quarter of the trials that reached the end of the rung, at least one, each with a parent of the best
// quarter. The same whenever it is called.
std::vector<Exchange> exchange(const Spec& spec, const Sweep& sweep);
// Records them; the weights have been copied.
void apply(const std::vector<Exchange>& exchanges, Sweep& sweep);

// All trials, best first: by rung reached, then by its result; trials without a result last, by number.
std::vector<int64_t> ranking(const Sweep& sweep);

// Steps trained, and the steps that the same trials would take without halving.
int64_t steps_trained(const Sweep& sweep);

void write_sweep(const std::filesystem::path& folder, const Sweep& sweep);
// Returns nothing if there is no file. Throws UserError if it is malformed, or was begun with other runs, rungs or goal
// than `now`.
std::optional<Sweep> read_sweep(const std::filesystem::path& folder, const Sweep& now);

}  // namespace kintsugi::sweep
