// The learning-rate range test (Smith 2017, section 3.3): steps with a learning rate that grows from step to step, and
// what it says.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/origin.h"

namespace kintsugi::train {

struct RateStep {
  double rate = 0;
  double loss = 0;    // of the step, before its update
  double smooth = 0;  // moving average of the losses up to it
};

struct RateTest {
  std::vector<RateStep> steps;
  bool diverged = false;           // it ended early: the loss was not finite, or far above the lowest
  std::optional<double> steepest;  // learning rate at which the smooth loss falls fastest
  std::optional<double> lowest;    // at which it is lowest
};

// The rate of step `step` of `steps`: grows by equal factors from 1e-7 to 10.
double test_rate(int64_t step, int64_t steps);

// Adds smooth losses and what follows from them.
RateTest judge_rates(std::vector<RateStep> steps, bool diverged);

struct FindRateOptions {
  config::Resolved config;
  int64_t steps = 100;
  std::function<void(int64_t done, int64_t all)> progress = {};  // called by rank 0
  std::function<void(const std::string&)> note = {};             // called by rank 0
};

// Trains for these steps in memory: the run's folder is not touched. Throws UserError as training does. In a process
// without rank 0, returns the result of its first rank.
RateTest find_rate(const FindRateOptions& options, std::span<const std::unique_ptr<comm::World>> worlds);

}  // namespace kintsugi::train
