// Root mean square errors of fields, from the sums of an evaluation.
#pragma once

#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/run/evaluate_pass.h"

namespace kintsugi::evaluate {

struct FieldError {
  double all = 0;                // over all channels
  std::vector<double> channels;  // of each
};

// `sum`: of a model with the objective fields, with at least one counted sample.
FieldError field_error(const config::Settings& settings, const run::LossSum& sum);

}  // namespace kintsugi::evaluate
