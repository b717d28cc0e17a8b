#include "kintsugi/kernels/pixel_scale.h"

#include <cstdlib>
#include <string>
#include <string_view>

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {
namespace {

// Entry `at` of a space-separated list, or its only one.
double number_of(const tensor::Attributes& attributes, std::string_view name, int64_t at) {
  const std::string& text = attributes.text(name);
  const char* p = text.c_str();
  double found = 0;
  int64_t count = 0;
  for (char* end = nullptr;; p = end) {
    const double x = std::strtod(p, &end);
    if (end == p) break;
    if (count++ <= at) found = x;
  }
  base::require(count == 1 || at < count, "pixels", "{} numbers of \"{}\", none for channel {}", count, name, at);
  return found;
}

}  // namespace

PixelScale pixel_scale(const tensor::Attributes& attributes, tensor::DType x, int64_t channel) {
  const double most = x == tensor::DType::u8 ? 255.0 : 1.0, mean = number_of(attributes, "mean", channel),
               deviation = number_of(attributes, "deviation", channel);
  return {1 / (most * deviation), -mean / deviation};
}

}  // namespace kintsugi::kernels
