// Finds the fastest layouts of a run on a described cluster.
//
// Every candidate has a lower bound of its time, which is refined step by step: by arithmetic, by layers, by schedule;
// then it is compiled as far as timing requires, and simulated; if it is fast enough, its memory is planned. The next
// candidate is chosen by a guess, from how far similar candidates were above their bounds. Once ten that fit have been
// simulated, and no remaining bound is below the slowest of them, the result is exact. Candidates are discarded if
// their memory is known to exceed a device's. Candidates with offload are considered only if the same layout without it
// is too large.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/search/candidate.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/simulate/work.h"

namespace kintsugi::search {

// A candidate, compiled and simulated.
struct Tried {
  Candidate candidate;
  int64_t bytes = 0;  // of the rank that needs the most
  simulate::Simulated time;
  simulate::Work work;
};

// Without `bytes` and without verification: about ten times faster than try_candidate(). Nothing if the layout is
// invalid.
std::optional<Tried> time_candidate(const config::Settings& settings, const Candidate& candidate,
                                    const simulate::Cluster& cluster);
// Memory of the rank that needs the most, for a valid layout.
int64_t bytes_of(const config::Settings& settings, const Candidate& candidate);

// Nothing if the layout is invalid. A layout that needs more than `limit` is not simulated.
std::optional<Tried> try_candidate(const config::Settings& settings, const Candidate& candidate,
                                   const simulate::Cluster& cluster, int64_t limit);

// Outcomes of the candidates; they sum to `all`.
struct Counts {
  int64_t all = 0;
  int64_t too_large = 0;  // by a bound, or as compiled
  int64_t too_slow = 0;   // by a bound
  int64_t refused = 0;
  int64_t simulated = 0;
};

struct Options {
  Space space;
  int64_t limit = 0;  // bytes per rank
  size_t best = 10;
  int threads = 1;
  double seconds = 0;  // time limit, after which a gap remains; 0: none
  // Also find the fastest layouts for less memory: that many limits, each an eighth below the previous one.
  int front = 0;
  std::function<void(const Counts&)> progress = {};
};

struct Found {
  std::vector<Tried> best;   // fastest first
  std::vector<Tried> front;  // Pareto front of time and memory; fastest first
  Counts counts;
  double left = 0;     // least bound of those not simulated for lack of time, in seconds; 0: none
  int64_t states = 0;  // bytes of weights, gradients and optimizer states of the whole model
  // If none fits: the candidate that needs the least, and the smallest power-of-two multiple of the devices on which
  // one would fit; 0: unknown.
  std::optional<Tried> smallest;
  int64_t enough_devices = 0;
};

// Independent of the number of threads, unless it runs out of time.
Found search(const config::Settings& settings, const simulate::Cluster& cluster, const Options& options);

}  // namespace kintsugi::search
