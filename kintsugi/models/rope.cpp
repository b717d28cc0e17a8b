// llama3: the Llama team 2024, section 3.2 and the published code. YaRN: Peng et al. 2023, section 3. LongRoPE: Ding et
// al. 2024, section 3.
#include "kintsugi/models/rope.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "kintsugi/config/choices.h"

namespace kintsugi::models {
namespace {

using config::RopeScaling;
using tensor::Attributes;

Attributes plain(const config::Model& m, double theta) {
  Attributes attributes = {
      {"theta", theta}, {"inverse", int64_t{0}}, {"interleaved", int64_t{m.rotary_interleaved ? 1 : 0}}};
  if (m.rotary_dims > 0 && m.rotary_dims < config::width_of_head(m)) attributes.set("dims", m.rotary_dims);
  return attributes;
}

// The factor of cosine and sine where the model does not specify it.
double derived_magnitude(const config::Model& m) {
  const auto original = static_cast<double>(m.rope_original_context);
  switch (config::rope_scaling(m)) {
    case RopeScaling::yarn:
      return yarn_magnitude(m.rope_factor);
    case RopeScaling::longrope:
      return longrope_magnitude(static_cast<double>(m.context) / original, original);
    case RopeScaling::none:
    case RopeScaling::linear:
    case RopeScaling::llama3:
      break;
  }
  return 1.0;
}

void scale(Attributes& a, const config::Model& m, int64_t positions) {
  switch (config::rope_scaling(m)) {
    case RopeScaling::none:
      return;
    case RopeScaling::linear:
      a.set("scaling", "linear");
      a.set("factor", m.rope_factor);
      return;
    case RopeScaling::llama3:
      a.set("scaling", "llama3");
      a.set("factor", m.rope_factor);
      a.set("low_factor", m.rope_low_factor);
      a.set("high_factor", m.rope_high_factor);
      a.set("original", m.rope_original_context);
      return;
    case RopeScaling::yarn:
      a.set("scaling", "yarn");
      a.set("factor", m.rope_factor);
      a.set("original", m.rope_original_context);
      a.set("beta_fast", m.rope_beta_fast);
      a.set("beta_slow", m.rope_beta_slow);
      a.set("truncate", int64_t{m.rope_truncate ? 1 : 0});
      return;
    case RopeScaling::longrope:
      a.set("scaling", "list");
      a.set(
          "factors",
          fmt::format(
              "{}", fmt::join(positions > m.rope_original_context ? m.rope_long_factors : m.rope_short_factors, " ")));
      return;
  }
}

}  // namespace

Attributes rotary(const config::Model& m, int64_t positions) {
  Attributes attributes = plain(m, m.rope_theta);
  scale(attributes, m, positions);
  const double magnitude = m.rope_magnitude > 0.0 ? m.rope_magnitude : derived_magnitude(m);
  if (magnitude != 1.0) attributes.set("magnitude", magnitude);
  return attributes;
}

double yarn_magnitude(double factor, double by) {
  return factor > 1.0 ? 0.1 * by * std::log(factor) + 1.0 : 1.0;
}

double longrope_magnitude(double factor, double original) {
  return factor > 1.0 ? std::sqrt(1.0 + std::log(factor) / std::log(original)) : 1.0;
}

Attributes unscaled_rotary(const config::Model& m) {
  return plain(m, m.rope_theta_window);
}

}  // namespace kintsugi::models
