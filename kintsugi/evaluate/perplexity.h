// The mean loss of a model over an entire token file.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>

#include "kintsugi/run/evaluate_pass.h"
#include "kintsugi/samples/batch.h"

namespace kintsugi::evaluate {

// The data of an evaluation: the first `samples` of a source, in batches of `batch` across all ranks, which is the
// batch of the list `evaluate`.
struct Rows {
  int64_t samples = 0;
  int64_t batch = 1;
};

// The batch that `data` ranks share evenly: at most the number of samples, rounded up.
int64_t even_batch(int64_t batch, int64_t samples, int64_t data);

// Runs the list `evaluate` over the rows. Each rank reads only the rows that it needs, and returns the sum over all.
run::LossSum mean_loss(run::Executor& executor, const samples::SampleSource& source, const Rows& rows);

// The same, but calls goes_on(rows done) before each batch, which must agree on all ranks; returns nothing at the first
// false.
std::optional<run::LossSum> mean_loss_while(run::Executor& executor, const samples::SampleSource& source,
                                            const Rows& rows, const std::function<bool(int64_t)>& goes_on);

// exp(loss). Throws UserError "[where] ..." with the loss and `what`, e.g. "over \"corpus/train\"", if it is infinite.
double perplexity(std::string_view where, std::string_view what, double loss);

}  // namespace kintsugi::evaluate
