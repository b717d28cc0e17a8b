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
  Values values = {};
  std::vector<double> results = {};  // the measure at the end of each completed rung; finite
  int64_t failures = 0;              // attempts that ended with an error
  std::string failed = {};           // why it is not retried; "": it may be
};

struct Sweep {
  std::string measure;  // "": unknown until a run reaches the end of a rung
  bool maximize = false;
  int64_t eta = 3;
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
// reached the end of the previous rung, ties by number. Empty until the previous rung is complete.
std::vector<int64_t> members(const Sweep& sweep, size_t rung);

// The remaining work of the first incomplete rung, by trial; empty: the sweep is done.
std::vector<Work> work(const Sweep& sweep);

// All trials, best first: by rung reached, then by its result; trials without a result last, by number.
std::vector<int64_t> ranking(const Sweep& sweep);

// Steps trained, and the steps that the same trials would take without halving.
int64_t steps_trained(const Sweep& sweep);

void write_sweep(const std::filesystem::path& folder, const Sweep& sweep);
// Returns nothing if there is no file. Throws UserError if it is malformed, or was begun with other runs, rungs or goal
// than `now`.
std::optional<Sweep> read_sweep(const std::filesystem::path& folder, const Sweep& now);

}  // namespace kintsugi::sweep
