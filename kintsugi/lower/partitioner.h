// The walk over a graph: each operation is given its layout, its operands are brought into it, and the kernel is
// called. The only operations that it knows by name are those that read and write states, inputs and outputs.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "kintsugi/lower/storage.h"

namespace kintsugi::lower {

class Partitioner {
 public:
  Partitioner(program::Program& p, const plan::Plan& plan, const Buckets& buckets, const Stages& stages,
              int64_t micro_batches = 1)
      : plan_(plan), emit_(p, stages), storage_(emit_, plan, buckets), micro_batches_(micro_batches) {}

  void run(const graph::Graph& g);

  // The parts in which the gradient of each weight arrives, over all of its uses.
  const std::map<graph::StateId, Layout>& arrivals() const { return arrivals_; }
  // Factors that split some operation.
  const std::set<Factor>& used() const { return used_; }

 private:
  // A value as it lies in a buffer of the ranks of a stage. `body`: where it lives; empty: wherever it is wanted.
  struct Piece {
    BufferId buffer = program::kNoBuffer;
    Layout layout;
    std::string body;
    int stage = 0;
    std::string made = {};  // the body that makes it
  };
  struct Value {
    std::string name;
    tensor::Type type;
    const graph::Op* op = nullptr;
    std::vector<Piece> pieces;
  };
  using Id = graph::ValueId;

  Value& value(Id v) { return values_[static_cast<size_t>(v)]; }
  Asked asked(const graph::Op& op, const std::string& by = {}) const;
  void enter(const graph::Op& op);
  void take(const graph::Op& op);
  void compute(const graph::Op& op);
  void compute_in_steps(const graph::Op& op, const Choice& choice);
  void accumulate(const graph::Op& op);
  void accumulate_gradient(const graph::Op& op, const Place& place);
  void accumulate_number(const graph::Op& op);
  void join_copies(const graph::Op& op);
  void assign(const graph::Op& op);
  void assign_here(const graph::Op& op);
  std::vector<graph::Op> grouped(const graph::Op& op);
  std::vector<graph::Op> chained(const graph::Op& op);
  void clear_padding(const graph::Op& op, BufferId b);

  std::optional<Layout> standing(Id v);
  void add_stored(Value& v);
  int layer_of(Id v) const;
  int stage_of(Id v, const graph::Op& op);
  void bring(Id v, const Layout& goal, const graph::Op& op);
  BufferId need(Id v, const Layout& goal, const graph::Op& op);
  BufferId make_free(Id v, const Layout& goal, const graph::Op& op);
  Piece stored(const graph::Op& read, const graph::Op& op);
  BufferId gathered(int bucket, graph::StateId state, const graph::Op& op);
  void tell_reduced(const Value& v);
  void reduce_into(BufferId from, const Layout& goal, BufferId to, const graph::Op& op);
  BufferId reduce(BufferId from, const Step& step, const Asked& asked);
  void add_up(BufferId from, BufferId to, const graph::Op& op);

  const plan::Plan& plan_;
  Emitter emit_;
  Storage storage_;
  int64_t micro_batches_;
  const graph::Graph* graph_ = nullptr;
  std::vector<Value> values_;  // of the graph, and behind them sums of groups
  std::map<graph::StateId, Layout> arrivals_;
  std::set<Factor> used_;
  bool apart_ = false;               // the backward pass is in two parts
  std::set<graph::StateId> joined_;  // accumulators of several stages, added up in the update
  std::map<std::tuple<graph::StateId, std::string, int>, BufferId> gathered_;  // by bucket, body, layer
  struct Staged {
    BufferId buffer = program::kNoBuffer;
    size_t left = 0;                // gradients that are still to come
    std::set<size_t> written = {};  // members
  };
  std::map<std::pair<graph::StateId, int>, Staged> staged_;  // by the accumulator's bucket and stage
};

}  // namespace kintsugi::lower
