#include "kintsugi/train/batches.h"

#include "kintsugi/build/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/models/models.h"

namespace kintsugi::train {

data::Share share_of(const run::Executor& executor, const config::Settings& s) {
  const run::Executor::RowRange needed = executor.input_rows(program::Step::train);
  const int64_t all = build::samples_of_pass(s), rows = needed.last - needed.first;
  const bool even = rows > 0 && all % rows == 0 && needed.first % rows == 0;
  if (!even) return {.global_batch = s.train.global_batch, .micro_batch = all};
  return {.global_batch = s.train.global_batch, .micro_batch = rows, .ranks = all / rows, .rank = needed.first / rows};
}

data::RowSizes row_of(const config::Settings& s) {
  const config::Model& m = s.model;
  const config::Objective objective = config::objective(m);
  const bool classes = objective == config::Objective::classes || objective == config::Objective::masked_next;
  data::RowSizes row = {.classes = classes ? 1 : 0, .weights = classes ? 1 : 0};
  if (objective == config::Objective::numbers) row.targets = m.outputs;
  if (!models::catalog().family(m.family)->reads_tokens) {
    row.features = m.features;
    return row;
  }
  row.tokens = s.train.sequence;
  if (config::of_tokens(objective)) row.labels = s.train.sequence;
  if (config::separates_documents(s)) row.starts = s.train.sequence;
  if (m.token_types > 0) row.types = s.train.sequence;
  return row;
}

}  // namespace kintsugi::train
