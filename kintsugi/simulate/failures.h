// Effect of failures and checkpoints on the time of a long run, and how often to save.
#pragma once

namespace kintsugi::simulate {

// In seconds. Failures are a Poisson process, also during restarts.
struct Failures {
  double between = 0;  // mean time between failures
  double restart = 0;  // from a failure until the newest checkpoint is loaded and training continues
  double write = 0;    // of a checkpoint, during which training pauses
};

// The fraction of time spent on steps that are not lost, with `interval` seconds of steps between checkpoints; 0 if the
// run makes no progress. Daly 2006, "A higher order estimate of the optimum checkpoint interval for restart dumps",
// section 3: the expected time of a segment of steps and its checkpoint.
double useful_share(const Failures& failures, double interval);

// The interval that maximizes it; ibid., without its approximations.
double best_interval(const Failures& failures);

}  // namespace kintsugi::simulate
