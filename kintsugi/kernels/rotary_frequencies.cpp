#include "kintsugi/kernels/rotary_frequencies.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {
namespace {

// Removes and returns the first number of a text, with preceding spaces. Throws InternalError if there is none.
double take_number(std::string_view& text) {
  text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  base::require(error == std::errc() && number > 0, "rotary", "no divisor above 0 at \"{}\" in the list of factors",
                text);
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return number;
}

}  // namespace

int64_t rotary_dims(const tensor::Attributes& attributes, int64_t head_dim) {
  return attributes.integer_or("dims", head_dim);
}

RotaryFrequencies::RotaryFrequencies(const tensor::Attributes& attributes, int64_t head_dim)
    : attributes_(attributes),
      dims_(rotary_dims(attributes, head_dim)),
      theta_(attributes.number("theta")),
      magnitude_(attributes.number_or("magnitude", 1)) {
  base::require(dims_ >= 0 && dims_ <= head_dim && (dims_ % 2 == 0 || dims_ == head_dim), "rotary",
                "{} dims of {} are no pairs", dims_, head_dim);
  if (!attributes.has("scaling")) return;
  const std::string& name = attributes.text("scaling");
  if (name == "list") {
    scaling_ = Scaling::list;
    std::string_view rest = attributes.text("factors");
    for (int64_t i = 0; i < dims_ / 2; ++i) take_number(rest);
    base::require(rest.find_first_not_of(' ') == std::string_view::npos, "rotary", "{} factors, and then \"{}\"",
                  dims_ / 2, rest);
    return;
  }
  factor_ = attributes.number("factor");
  if (name == "linear") {
    scaling_ = Scaling::linear;
  } else if (name == "llama3") {
    scaling_ = Scaling::llama3;
    const auto original = static_cast<double>(attributes.integer("original"));
    low_ = original / attributes.number("high_factor");
    high_ = original / attributes.number("low_factor");
  } else {
    base::require(name == "yarn", "rotary", "no scaling \"{}\"; there are linear, llama3, yarn, list", name);
    scaling_ = Scaling::yarn;
    low_ = pair_of(attributes.number("beta_fast"));
    high_ = pair_of(attributes.number("beta_slow"));
    if (attributes.integer_or("truncate", 1) != 0) low_ = std::floor(low_), high_ = std::ceil(high_);
    low_ = std::max(low_, 0.0);
    high_ = std::min(high_, static_cast<double>(dims_ - 1));
    if (low_ == high_) high_ += 0.001;
  }
}

double RotaryFrequencies::pair_of(double times) const {
  const auto original = static_cast<double>(attributes_.integer("original"));
  return static_cast<double>(dims_) * std::log(original / (2 * std::numbers::pi * times)) / (2 * std::log(theta_));
}

double RotaryFrequencies::operator[](int64_t i) const {
  const double plain = std::pow(theta_, -2.0 * static_cast<double>(i) / static_cast<double>(dims_));
  switch (scaling_) {
    case Scaling::none:
      return plain;
    case Scaling::linear:
      return plain / factor_;
    case Scaling::llama3: {
      const double wavelength = 2 * std::numbers::pi / plain;
      if (wavelength > high_) return plain / factor_;
      if (wavelength < low_) return plain;
      // 1 at the short end, 0 at the long one; in turns over the original length.
      const double share = (1 / wavelength - 1 / high_) / (1 / low_ - 1 / high_);
      return (1 - share) * plain / factor_ + share * plain;
    }
    case Scaling::yarn: {
      const double ramp = std::clamp((static_cast<double>(i) - low_) / (high_ - low_), 0.0, 1.0);
      return plain / factor_ * ramp + plain * (1 - ramp);
    }
    case Scaling::list: {
      std::string_view rest = attributes_.text("factors");
      double divisor = 1;
      for (int64_t k = 0; k <= i; ++k) divisor = take_number(rest);
      return plain / divisor;
    }
  }
  throw base::InternalError("rotary", "a scaling without frequencies");
}

}  // namespace kintsugi::kernels
