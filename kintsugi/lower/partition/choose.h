// The layout of one operation: which mesh factor splits which of its dims, and the layout required of each operand.
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

// The factors that split a dim; empty if it is whole.
std::vector<Factor> factors_of(const Splits& splits, std::string_view dim);

// The properties of an operation that choose() depends on.
struct Operation {
  const graph::OpRow& row;
  const tensor::Attributes& attributes;
  std::vector<Shape> ins, outs;  // whole, for those present
  tensor::Absent absent = {};
};

struct Choice {
  std::vector<Layout> ins;   // required, per operand
  std::vector<Layout> outs;  // per output
  Splits splits;             // of the operation's dims
  Splits steps;              // dims whose pieces rotate around these factors
};

// have: current layout of each operand; none: free to make in any layout. Each factor is settled by the first of these
// that applies: an additive operation whose operands are all partial stays partial; a rule of the plan; splits on which
// all operands agree are kept; a linear operation passes on the partial sum of one operand; the factor replicates the
// work.
Choice choose(const Operation& op, std::span<const std::optional<Layout>> have, const plan::Plan& plan);

// Cache of choose(): layers repeat the same operations.
class Choices {
 public:
  // The plan must outlive it.
  explicit Choices(const plan::Plan& plan) : plan_(plan) {}

  // As choose(); the reference is valid as long as this object.
  const Choice& of(const Operation& op, std::span<const std::optional<Layout>> have);

 private:
  // Everything a choice depends on, except the plan.
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
