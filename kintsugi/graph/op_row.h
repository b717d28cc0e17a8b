// The row of an operation: all that the house knows of it but its kernels. Which dims may be split, and what comes of
// it, is data here and not code in the partitioner.
//
// Because no value holds a dim name twice, a row needs little: every dim of every operand may be split unless `whole`
// names it. An operand or output that has the dim is split along it, an operand that lacks it is whole, and an output
// that lacks it is partial, with the combiner in `combine`.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/combiner.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::graph {

using ValueId = int32_t;
using StateId = int32_t;
constexpr int32_t kNone = -1;

class Graph;
struct Op;

using tensor::Combiner;

// What a rank spends on an operation, from the types of its local blocks.
struct Cost {
  double flops = 0;
  double memory_bytes = 0;  // read and written
};

using Types = std::span<const tensor::Type>;
// The types of the outputs, or an InternalError that says what does not fit.
using InferRule = std::vector<tensor::Type> (*)(Types ins, const tensor::Attributes&);
// The gradient of each input (kNone: none), from those of the outputs (kNone: not asked for).
using GradRule = std::vector<ValueId> (*)(Graph&, const Op&, std::span<const ValueId> douts);
using FlopsRule = double (*)(Types ins, Types outs, const tensor::Attributes&);

// What an operation is to those that must know more of it than its splits. compute: a function of its operands, as
// nearly all are. The others read a state, add to it, replace it; take what the run gives; hand out what it reads.
enum class Role : uint8_t { compute, read_state, accumulate, assign, input, output };

struct OpRow {
  std::string_view kind;
  Role role = Role::compute;
  std::string_view family = {};  // what "in ..." of a rule names; empty: the kind
  InferRule infer = nullptr;     // null: the outputs are said
  GradRule grad = nullptr;       // null: no gradient passes
  FlopsRule flops = nullptr;     // null: one per element of the first output

  // Splits.
  std::vector<std::string_view> whole = {};  // dims that are never split, beside those of the attribute "whole"
  std::vector<std::string_view> steps = {};  // dims of `whole` that it can take piece by piece
  std::string_view join = {};                // the kernel that joins the outputs of two pieces; empty: they are added
  std::vector<Combiner> combine = {};        // per output, sum where absent
  bool additive = false;                     // f(a + a', b + b') = f(a, b) + f(a', b')
  bool linear = false;                       // linear in each operand while the others are held
  bool variadic = false;                     // a sum of any number of operands: may be made in groups
  bool chained = false;                      // adds its operands in their order: f(a, b, c) = f(f(a, b), c)
  bool flat = false;                         // elementwise: may work on any flat piece of its operands' local blocks
  bool free = false;                         // costs nothing in any layout: made where and how it is asked for
  // Where the inputs are zero at padding, so are the outputs, and dims that an output lacks get nothing from padding;
  // of a sum (`variadic`) only where all operands have the padded dim. docs/operations.md says what the others give.
  bool keeps_zero = false;
  std::vector<std::pair<std::string_view, std::string_view>> alias = {};  // (output dim, input dim) split alike

  // Memory.
  std::vector<std::pair<int, int>> in_place = {};  // (output, input) that may share memory
  bool view = false;                               // the output is the input under other names
  bool must_share = false;                         // the output is the input's memory, changed in part
  uint32_t accumulates = 0;                        // bit i: output i can be added to what is there
  bool effect = false;                             // writes a state: stays though nothing reads it

  // What passes of the compiler do with it.
  bool selective = false;       // computed again under selective recomputation (Korthikanti et al. 2022, section 5)
  bool takes_bias = false;      // a third operand, whose dims are the last of the output's, is added to the output
  bool converts_dtype = false;  // the same numbers in another dtype

  std::string_view rule_family() const { return family.empty() ? kind : family; }
};

Cost cost(const OpRow& row, Types ins, Types outs, const tensor::Attributes& attributes);

// The visible list of operations, searched by kind.
class OpTable {
 public:
  explicit OpTable(std::vector<OpRow> rows);
  const OpRow& find(std::string_view kind) const;  // InternalError where there is none
  const std::vector<OpRow>& rows() const { return rows_; }

 private:
  std::vector<OpRow> rows_;
};

}  // namespace kintsugi::graph
