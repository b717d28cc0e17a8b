// The row of an operation: everything known about it except its kernels. Operands and outputs have a name and a
// position. How dims may be split, and with what result, is data here rather than code in the partitioner.
//
// Because no value has two dims of the same name, a row needs little: every dim of every operand may be split unless
// `whole` names it. Operands and outputs that have the dim are split along it, operands that lack it are whole, and
// outputs that lack it are partial, with the combiner in `combine`.
//
// A window operation (convolution, pooling) relates two sizes of one dim. Its `windowed` operands and outputs are
// indexed by input position, all others by output position; both use the same dim name ("height"), so that one rule
// splits the dim at every size. The attributes give the windowed dims and their kernel, stride, padding and dilation
// (tensor/window.h). The kernel's own dims have other names ("kernel_height") and are never split. If a windowed dim is
// split, each rank owns a range of output positions and holds every input position that their windows reach: a halo
// exchange fetches those of a windowed operand; a windowed output is a partial sum where ranks overlap, which a reverse
// halo exchange adds up. A windowed output must therefore be additive over output positions, as a convolution's input
// gradient is.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/combiner.h"
#include "kintsugi/tensor/cost_class.h"
#include "kintsugi/tensor/operands.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::graph {

using ValueId = int32_t;
using StateId = int32_t;
constexpr int32_t kNone = -1;

class Graph;
struct Op;

using tensor::Combiner;
using tensor::OperandList;

// Cost of an operation on a rank, computed from the types of its local blocks.
struct Cost {
  double flops = 0;
  double memory_bytes = 0;  // bytes read and written
  tensor::CostClass cost_class = tensor::CostClass::other;
};

// The types of an operation's operands or outputs, as its rules access them: by name or by position. Throws
// InternalError for absent ones.
class Types {
 public:
  Types(const OperandList& names, std::span<const tensor::Type> there, uint32_t absent)
      : names_(names), there_(there), absent_(absent) {}

  bool has(std::string_view name) const { return names_.place(name, absent_).has_value(); }
  const tensor::Type& operator[](std::string_view name) const;
  const tensor::Type& operator[](size_t position) const { return (*this)[names_[position].name]; }
  // Iterates over those present.
  size_t size() const { return there_.size(); }
  auto begin() const { return there_.begin(); }
  auto end() const { return there_.end(); }

 private:
  const OperandList& names_;
  std::span<const tensor::Type> there_;
  uint32_t absent_;
};

// The types of the outputs by position; absent ones are kAbsent, or omitted at the end.
struct AbsentOutput {};
constexpr AbsentOutput kAbsent;
class OutTypes {
 public:
  struct One {
    One(AbsentOutput) {}
    One(tensor::Type t) : type(std::move(t)) {}
    One(tensor::Shape shape, tensor::DType dtype) : type(tensor::Type{std::move(shape), dtype}) {}
    std::optional<tensor::Type> type;
  };
  OutTypes() = default;
  OutTypes(std::initializer_list<One> list) : list_(list) {}
  OutTypes(const std::vector<tensor::Type>& list) : list_(list.begin(), list.end()) {}

  const std::vector<One>& list() const { return list_; }
  void add(One one) { list_.push_back(std::move(one)); }

 private:
  std::vector<One> list_;
};

// Infers the outputs; throws an InternalError that states what does not fit.
using InferRule = OutTypes (*)(Types ins, const tensor::Attributes&);
// Returns the gradient of each operand by position (kNone: none), given those of the outputs by position (kNone: not
// needed).
using GradRule = std::vector<ValueId> (*)(Graph&, const Op&, std::span<const ValueId> douts);
using FlopsRule = double (*)(Types ins, Types outs, const tensor::Attributes&);

// The role of an operation, for code that must know more than its splits. compute: a pure function of its operands, as
// nearly all are. The others read, accumulate into or replace a state, take an input of the run, or produce an output
// of it.
enum class Role : uint8_t { compute, read_state, accumulate, assign, input, output };

struct OpRow {
  std::string_view kind;
  Role role = Role::compute;
  OperandList ins = {};
  OperandList outs = {};         // for an effect: names of what its kernel writes; no values in the graph
  std::string_view family = {};  // name used after "in" in plan rules; empty: the kind
  InferRule infer = nullptr;     // null: output types are given explicitly
  GradRule grad = nullptr;       // null: not differentiable
  FlopsRule flops = nullptr;     // null: one per element of the first output
  tensor::CostClass cost_class = tensor::CostClass::other;

  // Splitting.
  std::vector<std::string_view> whole = {};  // dims that are never split, in addition to those of the attribute "whole"
  std::vector<std::string_view> steps = {};  // dims of `whole` that can be processed piece by piece
  std::string_view join = {};                // kernel that merges the outputs of two pieces; empty: addition
  std::vector<std::pair<std::string_view, Combiner>> combine = {};  // per output; default: sum
  bool additive = false;                                            // f(a + a', b + b') = f(a, b) + f(a', b')
  bool linear = false;                                              // linear in each operand with the others fixed
  bool variadic = false;  // a sum of any number of operands, which may be grouped
  bool chained = false;   // adds its operands in order: f(a, b, c) = f(f(a, b), c)
  bool listed = false;    // one output per operand: f(a, b) is f(a) and f(b)
  bool flat = false;      // elementwise: applies to any flat piece of its operands' local blocks
  bool free = false;      // free in any layout: materialized where and as needed
  bool bucket = false;    // from a bucket to the dims of its only member or back: attribute "bucket", its index
  // If inputs are zero at padding so are the outputs, and padding contributes nothing to dims that an output lacks; for
  // a sum (`variadic`) only if all operands have the padded dim. docs/operations.md describes the others.
  bool keeps_zero = false;
  std::vector<std::pair<std::string_view, std::string_view>> alias = {};  // (dim, dim whose split it follows)

  std::vector<std::string_view> windowed = {};  // operands and outputs indexed by input position

  // flat: the result also depends on the positions of elements in the states that the attribute "states" names.
  bool by_position = false;

  // Memory.
  std::vector<std::pair<std::string_view, std::string_view>> in_place =
      {};                                          // (output, input) pairs that may share memory
  bool view = false;                               // the output is the input under other dim names
  bool must_share = false;                         // the first output is the first input, modified in place
  std::vector<std::string_view> accumulates = {};  // outputs that can be accumulated into existing values
  std::vector<std::string_view> narrows = {};      // outputs that can be bf16: computed in fp32, rounded once
  bool effect = false;                             // writes a state: never eliminated as unused

  // Treatment by compiler passes.
  bool light = false;      // memory-bound: recomputed under light recomputation
  bool selective = false;  // recomputed under selective recomputation (Korthikanti et al. 2022, section 5)
  // Optional outputs that exist even if unread: a fusion may replace all of them by one.
  std::vector<std::string_view> made_together = {};
  bool converts_dtype = false;  // converts values to another dtype

  std::string_view rule_family() const { return family.empty() ? kind : family; }
  Combiner combiner(std::string_view output) const;
  bool is_windowed(std::string_view operand_or_output) const;
  bool can_accumulate(std::string_view output) const;
  bool can_narrow(std::string_view output) const;
  bool may_share(std::string_view output, size_t input) const;  // the input at that position
};

// The cost of an operation with these operands and outputs, those that are present.
Cost cost(const OpRow& row, std::span<const tensor::Type> ins, std::span<const tensor::Type> outs,
          const tensor::Attributes& attributes, tensor::Absent absent = {});

// The list of all operations, searchable by kind.
class OpTable {
 public:
  explicit OpTable(std::vector<OpRow> rows);       // InternalError if a row is inconsistent or occurs twice
  const OpRow& find(std::string_view kind) const;  // InternalError if there is none
  const std::vector<OpRow>& rows() const { return rows_; }

 private:
  std::vector<OpRow> rows_;
  std::unordered_map<std::string_view, size_t> by_kind_;  // index into rows_
};

}  // namespace kintsugi::graph
