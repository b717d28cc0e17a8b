#include "kintsugi/config/allowed.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cmath>

#include "kintsugi/base/format.h"

namespace kintsugi::config {
namespace {

struct Describe {
  std::string operator()(const Boolean&) const { return "true or false"; }
  std::string operator()(const Integer& i) const {
    return fmt::format("an integer from {} to {}", base::group_digits(i.min), base::group_digits(i.max));
  }
  std::string operator()(const Number& n) const {
    if (std::isinf(n.min)) return "a number";
    std::string low = fmt::format("{} {}", n.above_min ? "above" : "from", n.min);
    if (std::isinf(n.max)) return fmt::format("a number {}", n.above_min ? low : fmt::format("of at least {}", n.min));
    return fmt::format("a number {} {} {}", low, n.below_max ? "to below" : "to", n.max);
  }
  std::string operator()(const Text& t) const { return std::string(t.what); }
  std::string operator()(const Texts& t) const { return std::string(t.what); }
  std::string operator()(const OneOf& o) const { return fmt::format("one of {}", fmt::join(o.words, ", ")); }
  std::string operator()(const Name& n) const { return std::string(n.what); }
  std::string operator()(const Numbers& n) const {
    const std::string list = n.count ? fmt::format("a list of {} numbers", n.count) : "a list of numbers";
    constexpr std::string_view kNumber = "a number ";
    const std::string each = (*this)(n.each);
    return each.size() < kNumber.size() ? list : fmt::format("{}, each {}", list, each.substr(kNumber.size()));
  }
  std::string operator()(const Sources&) const { return "a path, or a table of path = weight"; }
  std::string operator()(const Domains&) const { return "a path, or a table of domain = path"; }
};

}  // namespace

bool Number::contains(double x) const {
  return std::isfinite(x) && (above_min ? x > min : x >= min) && (below_max ? x < max : x <= max);
}

std::string describe(const Allowed& allowed) {
  return std::visit(Describe{}, allowed);
}

}  // namespace kintsugi::config
