// A rule of a plan: which dim of which family of operations is split over which axes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/tensor/dims.h"

namespace kintsugi::plan {

// Dims that plans and buckets know by name.
using tensor::kFlat;  // all of a bucket of parameters as one dim: only for kinds of state
using tensor::kSamples;

// `dim [in family] -> axes [, padded] [, in steps]`
struct Rule {
  std::string dim;
  std::vector<std::string> axes;  // of the mesh, or their factors ("data.1"), in the order of cutting
  std::string family = {};        // empty: in every operation and state
  bool pad = false;               // sizes that are not divisible are padded; else the axis goes to the next rule
  bool steps = false;             // its pieces travel round the axis while the operation runs (ring)
  bool general = false;           // made for any model: ignored if this one lacks the dim or the family

  bool operator==(const Rule&) const = default;
};

// UserError "[plan] rule `text`: ..." if it is no rule. Names are not looked up here.
Rule parse_rule(std::string_view text);
std::string to_string(const Rule& rule);  // parse_rule reads it back, except `general`

}  // namespace kintsugi::plan
