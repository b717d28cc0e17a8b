// What is done between two steps: validation, evaluation tasks, sampled texts.
#pragma once

#include "kintsugi/base/error.h"
#include "kintsugi/train/loop.h"
#include "kintsugi/train/rollouts.h"
#include "kintsugi/train/text_bytes.h"

namespace kintsugi::train {

// The data can no longer be read: the file was truncated, or the disk fails. The caller adds what there is to resume
// from.
class DataFailure : public base::UserError {
  using base::UserError::UserError;
};

// Throws it. `when`: "step 7".
[[noreturn]] void fail_data(const std::string& when, const base::UserError& error);

bool every_so_often(int64_t every, int64_t step);

struct BetweenSteps {
  TextBytes* bytes = nullptr;    // on rank 0, where losses are those of the next token
  Rollouts* rollouts = nullptr;  // where answers are rewarded
};

// Runs validation, evaluation tasks and sampling if due after a step, and sets their metrics. Collective. Returns false
// if a signal interrupted it.
bool look_between_steps(Rank& rank, const BetweenSteps& between, const LoopOptions& options, const Progress& progress,
                        Metrics& m);

}  // namespace kintsugi::train
