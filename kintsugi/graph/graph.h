// Graphs: values with ordered named dims, a list of operations, and states that outlive a step. Plain data, cheap to
// copy. Independent of mesh, layout and rank.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/graph/op_row.h"
#include "kintsugi/tensor/attributes.h"
#include "kintsugi/tensor/phase.h"
#include "kintsugi/tensor/shape.h"
#include "kintsugi/tensor/state.h"

namespace kintsugi::graph {

using tensor::Init;
using tensor::OptimizerPart;
using tensor::Phase;
using tensor::StateKind;

// The matrices in a weight: after `batch` leading dims that enumerate them, the next `rows` dims index rows and the
// others columns. rows = 0: not a matrix.
struct Matrix {
  int batch = 0;
  int rows = 0;

  bool operator==(const Matrix&) const = default;
};

// A value that persists from step to step.
struct State {
  std::string name;
  tensor::Type type;
  StateKind kind = StateKind::weight;
  StateId weight = kNone;  // for a gradient or optimizer state: its weight
  OptimizerPart part = OptimizerPart::none;
  int layer = 0;
  bool decay = false;  // weight decay applies
  Init init = {};
  bool saved = true;    // stored in checkpoints, not recomputed from other states
  bool frozen = false;  // for a weight: not trained, without gradient, optimizer states and master
  bool parts = false;   // accumulated values may stay partial over ranks until the state is read
  double rate = 1.0;    // for a weight: factor of the learning rate
  bool alone = false;   // for a weight: its update needs all of it, so it shares no bucket with others
  Matrix matrix = {};   // for a weight: set for hidden matrices
};

// The states of a model, shared by all of its graphs. A StateId is an index into it.
class StateTable {
 public:
  StateId add(State state);                   // InternalError if the name exists
  StateId find(std::string_view name) const;  // kNone if there is none
  StateId gradient_of(StateId weight) const;  // its accumulator, or kNone
  void freeze(StateId weight);                // InternalError if it is not a weight or already has a gradient
  // Of a weight; InternalError for other states.
  void set_rate(StateId weight, double rate);
  void set_alone(StateId weight);
  void set_matrix(StateId weight, Matrix matrix);
  const State& operator[](StateId id) const { return states_[static_cast<size_t>(id)]; }
  size_t size() const { return states_.size(); }
  auto begin() const { return states_.begin(); }
  auto end() const { return states_.end(); }

 private:
  std::vector<State> states_;
  std::map<std::string, StateId, std::less<>> by_name_;
  std::map<StateId, StateId> gradients_;  // [weight]
};

struct Value {
  std::string name;
  tensor::Type type;
  int op = -1;  // producer
};

struct Op {
  const OpRow* row = nullptr;
  std::vector<ValueId> ins;  // present operands, in the row's order
  std::vector<ValueId> outs;
  tensor::Absent absent = {};
  tensor::Attributes attributes;
  StateId state = kNone;  // for read_state, accumulate, assign
  Phase phase = Phase::forward;
  int layer = 0;

  std::string_view kind() const { return row->kind; }
  Role role() const { return row->role; }
  // By name; kNone if absent. Throws InternalError if the row has no such name.
  ValueId in(std::string_view name) const;
  ValueId out(std::string_view name) const;
  // Expands `list`, which has one entry per present operand, to one entry per position, with kNone for absent ones.
  std::vector<ValueId> by_position(std::span<const ValueId> list) const;
};

class Graph {
 public:
  Graph(std::string name, const OpTable& table, const StateTable& states)
      : name_(name), table_(&table), states_(&states) {}

  // Phase and layer of operations appended from here on.
  Phase phase = Phase::forward;
  int layer = 0;

  // Appends an operation whose outputs are inferred by its row. `ins` are by position, kNone for absent operands
  // (trailing ones may be omitted). `name` names the outputs in dumps. Returns the outputs that are present. Throws
  // InternalError if the row requires other operands.
  std::vector<ValueId> apply(std::string_view kind, std::vector<ValueId> ins, tensor::Attributes attributes = {},
                             std::string_view name = {});
  // As apply(), for operations with one output.
  ValueId op(std::string_view kind, std::vector<ValueId> ins, tensor::Attributes attributes = {},
             std::string_view name = {});
  // Appends an operation with explicit output types: inputs, broadcasts, gradients of tables.
  std::vector<ValueId> make(std::string_view kind, std::vector<ValueId> ins, const OutTypes& outs,
                            tensor::Attributes attributes = {}, std::string_view name = {});

  // Helpers that derive attributes from operands.
  ValueId input(std::string_view name, tensor::Type type);
  ValueId fill(double value, tensor::Type type);
  ValueId read(StateId state);
  void accumulate(ValueId value, StateId state);
  void assign(ValueId value, StateId state);
  ValueId add(std::vector<ValueId> values);  // a single value is returned unchanged
  ValueId scale(ValueId x, double by);
  // Sums over every dim that is not in the type's shape; returns x unchanged if there is none.
  ValueId sum_to(ValueId x, const tensor::Type& type);
  // The product of a and b, summed over every dim that is not in `dims`.
  ValueId contract(ValueId a, ValueId b, std::string_view dims, tensor::DType dtype);
  ValueId rename(ValueId x, std::string_view from, std::string_view to);

  void set_phase(size_t op, Phase to) { ops_[op].phase = to; }

  // Removes operations from `first` on that neither `wanted` nor an effect depends on; optional outputs that nothing
  // uses become absent. Renumbers values from the first that these operations produce. Returns the new ids of `wanted`,
  // whose entries may be kNone.
  std::vector<ValueId> prune(size_t first, std::vector<ValueId> wanted);

  // The type of the gradient of x: that of x, but at least fp32 if x reads a weight.
  tensor::Type gradient_type(ValueId x) const;

  const std::string& name() const { return name_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<Value>& values() const { return values_; }
  const Op& op_at(size_t i) const { return ops_[i]; }
  const Value& value(ValueId id) const { return values_[static_cast<size_t>(id)]; }
  const tensor::Type& type(ValueId id) const { return value(id).type; }
  const tensor::Shape& shape(ValueId id) const { return type(id).shape; }
  const StateTable& states() const { return *states_; }
  const OpTable& table() const { return *table_; }

 private:
  std::string name_;
  const OpTable* table_;
  const StateTable* states_;
  std::vector<Op> ops_;
  std::vector<Value> values_;
};

// fp32 for bf16 and fp16, else the dtype itself: used for statistics, gradients of weights and optimizer states.
tensor::DType wide(tensor::DType dtype);

}  // namespace kintsugi::graph
