// A rule of a plan: which dim of which family of operations is split over which axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/dims.h"

namespace kintsugi::plan {

// Dims that plans and buckets refer to by name.
using tensor::kFlat;  // a whole bucket of parameters as one dim; only for kinds of state
using tensor::kSamples;

// `dim [in family] -> axes [, padded] [, in steps]`
struct Rule {
  std::string dim;
  std::vector<std::string> axes;  // mesh axes or factors ("data.1"), in the order of cutting
  std::string family = {};        // empty: all operations and states
  bool pad = false;               // pad sizes that are not divisible; else the axis falls through to the next rule
  bool steps = false;             // ring: pieces rotate around the axis while the operation runs
  bool general = false;           // built-in rule for any model: ignored if this model lacks the dim or family

  bool operator==(const Rule&) const = default;
};

// Throws UserError "[plan] rule `text`: ..." on a syntax error. Does not look up names.
Rule parse_rule(std::string_view text);
std::string to_string(const Rule& rule);  // inverse of parse_rule(), except for `general`

}  // namespace kintsugi::plan
