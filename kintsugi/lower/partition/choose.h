// The layout of one operation: which mesh factor splits which of its dims, and which layout each operand must have for
// that.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/mesh/layout.h"
#include "kintsugi/plan/by_rules.h"
#include "kintsugi/tensor/dims.h"

namespace kintsugi::lower {

using mesh::Factor;
using mesh::Layout;
using tensor::Shape;

using plan::Splits;
using tensor::kFlat;
using tensor::kShard;

// The factors that split a dim; none if it is whole.
std::vector<Factor> factors_of(const Splits& splits, std::string_view dim);

// What choose() needs of an operation.
struct Operation {
  const graph::OpRow& row;
  const tensor::Attributes& attributes;
  std::vector<Shape> ins, outs;  // whole, of those that are present
  tensor::Absent absent = {};
};

struct Choice {
  std::vector<Layout> ins;   // the required layout of each operand
  std::vector<Layout> outs;  // the layout of each output
  Splits splits;             // dims of the operation
  Splits steps;              // dims whose pieces travel round these factors
};

// have: the current layout of each operand; none: free to make. Each factor is settled by the first of these that
// applies: an additive operation whose operands are all partial stays partial; a rule of the plan; operands that agree
// stay as they are; a linear operation passes on the partial sum of one operand; the factor repeats the work.
Choice choose(const Operation& op, std::span<const std::optional<Layout>> have, const plan::Plan& plan);

// What was chosen, found again: layers have the same operations.
class Choices {
 public:
  // The plan outlives it.
  explicit Choices(const plan::Plan& plan) : plan_(plan) {}

  // As choose(); valid as long as this is.
  const Choice& of(const Operation& op, std::span<const std::optional<Layout>> have);

 private:
  // All that a choice depends on, besides the plan.
  struct Known {
    std::array<std::string, 4> texts;  // of the attributes
    std::vector<Shape> ins, outs;
    tensor::Absent absent;
    std::vector<std::optional<Layout>> have;
    Choice choice;
  };

  const plan::Plan& plan_;
  std::map<const graph::OpRow*, std::deque<Known>> known_;
};

}  // namespace kintsugi::lower
