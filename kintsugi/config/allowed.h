// The allowed values of a key, types and ranges as data, so that parsing, errors, help and documentation agree.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace kintsugi::config {

struct Boolean {};

struct Integer {
  int64_t min;
  int64_t max;  // defaults to a sanity bound that keeps products of two sizes far from overflow
};

struct Number {
  double min;
  double max;  // infinity: unbounded; numbers are always finite
  bool above_min = false;
  bool below_max = false;

  bool contains(double x) const;
};

struct Text {
  std::string_view what;  // "a path"
};

struct Texts {
  std::string_view what;  // "a list of rules"
};

struct OneOf {
  std::vector<std::string_view> words;
};

// A word defined by the model catalog.
struct Name {
  std::string_view what;  // "a named size"
};

struct Numbers {
  size_t count;  // 0: any number
  Number each;
};

// Data sources: a path, a list of paths, a table of path = weight, or a list of tables with path and weight.
struct Sources {};

// Token files to evaluate on: a path, or a table of domain = path.
struct Domains {};

using Allowed = std::variant<Boolean, Integer, Number, Text, Texts, OneOf, Name, Numbers, Sources, Domains>;

// "an integer from 1 to 100", "a number above 0", "one of cosine, linear, constant": completes "it must be".
std::string describe(const Allowed& allowed);

}  // namespace kintsugi::config
