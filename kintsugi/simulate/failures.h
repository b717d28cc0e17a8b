// What failures and checkpoints leave of the time of a long run, and how often to save.
#pragma once

namespace kintsugi::simulate {

// All in seconds. Failures come at any time alike, also during a restart.
struct Failures {
  double between = 0;  // mean time between two
  double restart = 0;  // from a failure until the newest checkpoint is loaded and training goes on
  double write = 0;    // of a checkpoint, during which nothing is trained
};

// The share of the time in which steps are done that are not lost, with so many seconds of steps between two
// checkpoints; 0 where the run gets nowhere. Daly 2006, "A higher order estimate of the optimum checkpoint interval for
// restart dumps", section 3: the expected time of a segment of steps and its checkpoint.
double useful_share(const Failures& failures, double interval);

// The interval of which most is left; ibid., without its approximations.
double best_interval(const Failures& failures);

}  // namespace kintsugi::simulate
