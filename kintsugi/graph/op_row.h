// The row of an operation: all that is known of it but its kernels. Its operands and outputs have names, and a
// position each. Which dims may be split, and with what result, is data here and not code in the partitioner.
//
// Because no value holds a dim name twice, a row needs little: every dim of every operand may be split unless `whole`
// names it. An operand or output that has the dim is split along it, an operand that lacks it is whole, and an output
// that lacks it is partial, with the combiner in `combine`.
//
// A window operation (convolution, pooling) relates two sizes of one dim. Its `windowed` operands and outputs are
// indexed by input position, all others by output position; both use the same dim name ("height"), so that one rule
// splits the dim at every size. The attributes give the windowed dims and their kernel, stride, padding and dilation
// (tensor/window.h). The kernel's own dims have other names ("kernel_height") and are never split. If a windowed dim is
// split, each rank owns a range of output positions and holds every input position that their windows reach: a halo
// exchange fetches those of a windowed operand; a windowed output is a partial sum where ranks overlap, which a reverse
// halo exchange adds up. So a windowed output must be additive over output positions, as a convolution's input
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

// What a rank spends on an operation, computed from the types of its local blocks.
struct Cost {
  double flops = 0;
  double memory_bytes = 0;  // read and written
};

// The operands or the outputs of an operation by their types, as its rules access them: by name, or by position.
// InternalError for one that is absent.
class Types {
 public:
  Types(const OperandList& names, std::span<const tensor::Type> there, uint32_t absent)
      : names_(names), there_(there), absent_(absent) {}

  bool has(std::string_view name) const { return names_.place(name, absent_).has_value(); }
  const tensor::Type& operator[](std::string_view name) const;
  const tensor::Type& operator[](size_t position) const { return (*this)[names_[position].name]; }
  // Those that are present.
  size_t size() const { return there_.size(); }
  auto begin() const { return there_.begin(); }
  auto end() const { return there_.end(); }

 private:
  const OperandList& names_;
  std::span<const tensor::Type> there_;
  uint32_t absent_;
};

// The types of the outputs, each at its position; one that is absent is kAbsent, or left out at the end.
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

// The outputs; InternalError that says what does not fit.
using InferRule = OutTypes (*)(Types ins, const tensor::Attributes&);
// The gradient of each operand at its position (kNone: none), from those of the outputs at theirs (kNone: not asked
// for).
using GradRule = std::vector<ValueId> (*)(Graph&, const Op&, std::span<const ValueId> douts);
using FlopsRule = double (*)(Types ins, Types outs, const tensor::Attributes&);

// The role of an operation, for code that must know more of it than its splits. compute: a function of its operands,
// as nearly all are. The others read a state, add to it, or replace it; take an input of the run; or give an output to
// it.
enum class Role : uint8_t { compute, read_state, accumulate, assign, input, output };

struct OpRow {
  std::string_view kind;
  Role role = Role::compute;
  OperandList ins = {};
  OperandList outs = {};         // of an effect: the names that its kernel writes; it has none in a graph
  std::string_view family = {};  // what "in ..." of a rule names; empty: the kind
  InferRule infer = nullptr;     // null: the outputs are given
  GradRule grad = nullptr;       // null: no gradient passes
  FlopsRule flops = nullptr;     // null: one per element of the first output

  // Splits.
  std::vector<std::string_view> whole = {};  // dims that are never split, beside those of the attribute "whole"
  std::vector<std::string_view> steps = {};  // dims of `whole` that it can take piece by piece
  std::string_view join = {};                // the kernel that joins the outputs of two pieces; empty: they are added
  std::vector<std::pair<std::string_view, Combiner>> combine = {};  // of outputs; sum if not given
  bool additive = false;                                            // f(a + a', b + b') = f(a, b) + f(a', b')
  bool linear = false;                                              // linear in each operand while the others are held
  bool variadic = false;  // a sum of any number of operands: may be made in groups
  bool chained = false;   // adds its operands in their order: f(a, b, c) = f(f(a, b), c)
  bool listed = false;    // makes an output of each operand: f(a, b) is f(a) and f(b)
  bool flat = false;      // elementwise: may work on any flat piece of its operands' local blocks
  bool free = false;      // costs nothing in any layout: made where and how it is needed
  // Where the inputs are zero at padding, so are the outputs, and dims that an output lacks get nothing from padding;
  // of a sum (`variadic`) only where all operands have the padded dim. docs/operations.md says what the others give.
  bool keeps_zero = false;
  std::vector<std::pair<std::string_view, std::string_view>> alias = {};  // (output dim, input dim) split alike

  std::vector<std::string_view> windowed = {};  // operands and outputs that are indexed by input position

  // Memory.
  std::vector<std::pair<std::string_view, std::string_view>> in_place = {};  // (output, input) that may share memory
  bool view = false;                               // the output is the input under other names
  bool must_share = false;                         // the first output is the first input's memory, changed in part
  std::vector<std::string_view> accumulates = {};  // outputs that can be added to what is there
  std::vector<std::string_view> narrows = {};      // outputs that can be in bf16: computed in fp32, rounded once
  bool effect = false;                             // writes a state: kept though nothing reads it

  // How passes of the compiler treat it.
  bool light = false;      // a pass over memory: computed again under light recomputation
  bool selective = false;  // computed again under selective recomputation (Korthikanti et al. 2022, section 5)
  // Optional outputs that are made even if nothing reads one of them: a fusion may replace all of them by one.
  std::vector<std::string_view> made_together = {};
  bool converts_dtype = false;  // the same numbers in another dtype

  std::string_view rule_family() const { return family.empty() ? kind : family; }
  Combiner combiner(std::string_view output) const;
  bool is_windowed(std::string_view operand_or_output) const;
  bool can_accumulate(std::string_view output) const;
  bool can_narrow(std::string_view output) const;
  bool may_share(std::string_view output, size_t input) const;  // the input at that position
};

// The cost of a row's operation with these operands and outputs, those that are present.
Cost cost(const OpRow& row, std::span<const tensor::Type> ins, std::span<const tensor::Type> outs,
          const tensor::Attributes& attributes, tensor::Absent absent = {});

// The visible list of operations, searched by kind.
class OpTable {
 public:
  explicit OpTable(std::vector<OpRow> rows);  // InternalError if a row names what it does not have, or occurs twice
  const OpRow& find(std::string_view kind) const;  // InternalError if there is none
  const std::vector<OpRow>& rows() const { return rows_; }

 private:
  std::vector<OpRow> rows_;
  std::unordered_map<std::string_view, size_t> by_kind_;  // positions in rows_
};

}  // namespace kintsugi::graph
