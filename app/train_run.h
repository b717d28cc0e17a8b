// A run from its options to its last line, as `train` and `launch` do it.
#pragma once

#include <functional>
#include <string>

#include "app/run_options.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/train/trainer.h"

namespace kintsugi::app {

inline constexpr std::string_view kFastestLayout = "auto";  // --layout

struct TrainRunOptions {
  train::Resume resume = train::Resume::no;
  std::string layout = "given";
  int64_t stop_at = 0;                                  // --stop-at; 0: not given
  bool find_rate = false;                               // --find-learning-rate
  std::string picture = "learning_rates.svg";           // of it
  std::function<void(comm::World& world)> before = {};  // called by ranks that are processes, once they have met
};

void train_run(RunOptions options, const TrainRunOptions& train_options);

}  // namespace kintsugi::app
