// The fastest layouts of a run on a described cluster.
//
// Every candidate has a lower bound of its time, which is made closer step by step: by arithmetic, by layers, by its
// schedule; then it is compiled as far as time needs, and simulated; if it is fast enough, its memory is planned. Which
// one is next is guessed from how far candidates like it were above their bounds. When ten that fit have been
// simulated, and no bound that is left is below the slowest of them, no other can be among the ten. A candidate is left
// out when its memory is known to be more than a device has. One with offload is looked at only where the same layout
// without it is too large.
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

// Without its bytes, and nothing is verified: some ten times faster than all of it. Nothing if the layout is refused.
std::optional<Tried> time_candidate(const config::Settings& settings, const Candidate& candidate,
                                    const simulate::Cluster& cluster);
// Of the rank that needs most, of a layout that is not refused.
int64_t bytes_of(const config::Settings& settings, const Candidate& candidate);

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
  double seconds = 0;  // after which it ends, with a gap left; 0: never
  // The fastest for less memory too: for so many limits, each an eighth less than the one before.
  int front = 0;
  std::function<void(const Counts&)> progress = {};
};

struct Found {
  std::vector<Tried> best;   // the fastest first
  std::vector<Tried> front;  // none of them both slower and larger than another; the fastest first
  Counts counts;
  double left = 0;     // the least bound of those that were not simulated for lack of time, in seconds; 0: none
  int64_t states = 0;  // bytes of the weights, gradients and optimizer of the whole model
  // If none fits: the one with the least need, and the least multiple of the devices on which one would, by a power of
  // two; 0: not known.
  std::optional<Tried> smallest;
  int64_t enough_devices = 0;
};

// The same for every number of threads, if it does not end for lack of time.
Found search(const config::Settings& settings, const simulate::Cluster& cluster, const Options& options);

}  // namespace kintsugi::search
