// Reads the samples of a micro-batch into the inputs of the program.
#pragma once

#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/data/batch.h"
#include "kintsugi/data/share.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Memory for some rows of a micro-batch.
class Batch {
 public:
  Batch(int64_t rows, const config::Settings& settings);

  const data::BatchView& view() const { return view_; }
  void copy(const data::BatchView& from);  // of as many rows

 private:
  std::vector<int32_t> tokens_, labels_, starts_;
  data::BatchView view_;
};

// The rows that a rank reads of each micro-batch: those that it needs if they are an even part, else all of them.
data::Share share_of(const run::Executor& executor, const config::Settings& settings);

// Sets the inputs to a batch that begins at row `first` of the micro-batch.
void set_inputs(const run::Executor::Inputs& inputs, const data::BatchView& batch, int64_t first, int64_t sequence);

}  // namespace kintsugi::train
