// The mean loss of a model over a whole token file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

#include "kintsugi/run/evaluate_pass.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::evaluate {

// The data of an evaluation: the first `samples` of a source, `batch` at a time on all ranks together, which is the
// batch of the list `evaluate`.
struct Rows {
  int64_t samples = 0;
  int64_t batch = 1;
};

// The batch that `data` ranks share evenly: at most the number of samples, rounded up.
int64_t even_batch(int64_t batch, int64_t samples, int64_t data);

// Runs the list `evaluate` over the rows; each rank reads those that it needs, and gets the sum over all.
run::LossSum mean_loss(run::Executor& executor, const samples::SampleSource& source, const Rows& rows);

// The same. Before each batch goes_on(rows done) is asked, which all ranks answer alike: at the first false it ends,
// with nothing.
std::optional<run::LossSum> mean_loss_while(run::Executor& executor, const samples::SampleSource& source,
                                            const Rows& rows, const std::function<bool(int64_t)>& goes_on);

}  // namespace kintsugi::evaluate
