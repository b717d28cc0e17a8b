// The fastest layouts of a run on a described cluster.
//
// Every candidate waits in a queue under the best known lower bound of its time; the one on top is bounded more closely,
// then compiled and simulated. When ten that fit have been simulated, and the bound on top is above the slowest of them,
// no other can be among the ten. A candidate leaves the queue when its memory is known to be more than a device has.
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
  int64_t bytes = 0;  // of the rank that needs most
  simulate::Simulated time;
  simulate::Work work;
};

// Nothing if the layout is refused. A layout that needs more than `limit` is not simulated.
std::optional<Tried> try_candidate(const config::Settings& settings, const Candidate& candidate,
                                   const simulate::Cluster& cluster, int64_t limit);

// What became of the candidates; they add up.
struct Counts {
  int64_t all = 0;
  int64_t too_large = 0;  // by a bound, or as compiled
  int64_t too_slow = 0;   // by a bound
  int64_t refused = 0;
  int64_t simulated = 0;
};

struct Options {
  Space space;
  int64_t limit = 0;  // bytes of a rank
  size_t best = 10;
  int threads = 1;
  // The fastest for less memory too: for so many limits, each an eighth less than the one before.
  int front = 0;
  std::function<void(const Counts&)> progress = {};
};

struct Found {
  std::vector<Tried> best;   // the fastest first
  std::vector<Tried> front;  // none of them both slower and larger than another; the fastest first
  Counts counts;
  int64_t states = 0;         // bytes of the weights, gradients and optimizer of the whole model
  // If none fits: the one with the least need, and the least multiple of the devices on which one would, by a power of
  // two; 0: not known.
  std::optional<Tried> smallest;
  int64_t enough_devices = 0;
};

// The same for every number of threads.
Found search(const config::Settings& settings, const simulate::Cluster& cluster, const Options& options);

}  // namespace kintsugi::search
