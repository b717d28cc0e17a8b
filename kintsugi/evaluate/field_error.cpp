#include "kintsugi/evaluate/field_error.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/config/choices.h"

namespace kintsugi::evaluate {
namespace {

// The pixels of the evaluated samples: a loss counts numbers or samples.
double pixels_of(const config::Settings& s, const run::LossSum& sum) {
  const config::Model& m = s.model;
  switch (config::field_loss(s.train)) {
    case config::FieldLoss::mse:
      return sum.count / static_cast<double>(m.outputs);
    case config::FieldLoss::relative_l2:
      return sum.count * static_cast<double>(std::max<int64_t>(m.image_depth, 1) * m.image_height * m.image_width);
  }
  throw base::InternalError("evaluate", "an unknown loss of fields");
}

}  // namespace

FieldError field_error(const config::Settings& s, const run::LossSum& sum) {
  const double pixels = pixels_of(s, sum);
  FieldError error;
  double squares = 0;
  for (const double of_channel : sum.errors) {
    squares += of_channel;
    error.channels.push_back(std::sqrt(of_channel / pixels));
  }
  error.all = std::sqrt(squares / (pixels * static_cast<double>(sum.errors.size())));
  return error;
}

}  // namespace kintsugi::evaluate
