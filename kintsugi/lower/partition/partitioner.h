// Walks a graph: chooses the layout of each operation, converts its operands, and emits the kernel. Depends on the role
// and row of operations, never on their names.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "kintsugi/lower/partition/choose.h"
#include "kintsugi/lower/partition/storage.h"

namespace kintsugi::lower {

class Partitioner {
 public:
  Partitioner(program::Program& p, const graph::OpTable& operations, const plan::Plan& plan, const Buckets& buckets,
              const Stages& stages, int64_t micro_batches = 1, bool writes = true)
      : plan_(plan),
        choices_(plan),
        emit_(p, operations, stages, writes),
        storage_(emit_, plan, buckets),
        micro_batches_(micro_batches) {}

  // Emits the operations of a graph: all to bodies for `work`, or, for a micro-batch, each to the body of its phase.
  void run(const graph::Graph& g, std::optional<program::Work> work = std::nullopt);

  // The partial factors with which the gradient of each weight arrives, over all of its uses.
  const std::map<graph::StateId, Layout>& arrivals() const { return arrivals_; }
  // Factors that split some operation.
  const std::set<Factor>& used() const { return used_; }

 private:
  // A value in a buffer on the ranks of a stage.
  struct Piece {
    BufferId buffer = program::kNoBuffer;
    Layout layout;
    BodyId only_body = kNoBody;  // the only body that may use it; none: any body of the stage
    int stage = 0;
    BodyId made_in = kNoBody;  // none: a state, as stored
  };
  struct Value {
    std::string name;
    tensor::Type type;
    const graph::Op* op = nullptr;
    std::vector<Piece> pieces;
  };
  using Id = graph::ValueId;

  Value& value(Id v) { return values_[static_cast<size_t>(v)]; }
  const Value& value(Id v) const { return values_[static_cast<size_t>(v)]; }
  const program::Buffer& buffer(BufferId b) const { return emit_.program().buffer(b); }
  int layer_of(Id v) const;
  // The body of an operation, and the site of what it needs in some body.
  program::Work work_of(const graph::Op& op) const;
  BodyId body_of(const graph::Op& op);
  Site site(const graph::Op& op, BodyId body) const;

  // Operations, in the body of each; partitioner.cpp.
  void take(const graph::Op& op);
  void compute(const graph::Op& op, BodyId body);
  void convert_bucket(const graph::Op& op, BodyId body);
  void compute_in_steps(const graph::Op& op, const Choice& choice, BodyId body);
  tensor::Attributes local_attributes(const graph::Op& op, const Splits& splits) const;
  void clear_padding(const graph::Op& op, BufferId b, BodyId body);

  // Sums, emitted as several operations; partition_sums.cpp.
  std::vector<graph::Op> in_groups(const graph::Op& op, BodyId body);
  std::vector<graph::Op> in_order_of_stages(const graph::Op& op, BodyId body);
  Id add_partial_sum(const graph::Op& op, const tensor::Type& type);
  int stage_of(Id v, const graph::Op& op) const;

  // Values; partition_values.cpp states the invariants.
  void show_stored(Id v, BodyId body);
  std::optional<Layout> layout_of(Id v) const;
  BufferId need(Id v, const Layout& goal, const graph::Op& op, BodyId body);
  bool may_use(const Piece& piece, BodyId body) const;
  void locate(Id v, const Layout& goal, const graph::Op& op, BodyId body);
  Piece choose_source(const Value& v, const Layout& goal, BodyId body) const;
  BufferId convert(Id v, Piece source, const Layout& goal, const graph::Op& op, BodyId body);
  void receive(Id v, const Layout& goal, const graph::Op& op, BodyId body);
  const Piece* smallest_to_send(Id v, const Layout& goal) const;
  BodyId maker_of(const Piece& piece);
  std::vector<BodyId> way(BodyId from, BodyId to);
  BufferId make_free(Id v, const Layout& goal, const graph::Op& op, BodyId body);
  Piece stored_parameter(const graph::Op& read, const graph::Op& op, BodyId body);
  BufferId gathered(int bucket, graph::StateId state, const graph::Op& op, BodyId body);

  // States; partition_states.cpp.
  void accumulate(const graph::Op& op, BodyId body);
  void accumulate_gradient(const graph::Op& op, const Place& place, BodyId body);
  void accumulate_number(const graph::Op& op, BodyId body);
  void join_replicas(const graph::Op& op, BodyId body);
  void assign(const graph::Op& op, BodyId body);
  void assign_on_stage(const graph::Op& op, BodyId body);
  void record_reduced(const Value& v, int stage);
  void reduce_into(BufferId from, const Layout& goal, BufferId to, const Site& site);
  BufferId reduce(BufferId from, const Step& step, const Site& site);
  void add_in_tree(BufferId from, BufferId to, const Site& site);

  const plan::Plan& plan_;
  Choices choices_;
  Emitter emit_;
  Storage storage_;
  int64_t micro_batches_;
  std::map<graph::StateId, Layout> arrivals_;
  std::set<Factor> used_;
  std::set<graph::StateId> joined_;       // accumulators of several stages, summed in the update
  std::map<BufferId, BufferId> reduced_;  // [accumulator]: the fully reduced gradient

  // The graph being walked.
  const graph::Graph* graph_ = nullptr;
  std::optional<program::Work> work_ = std::nullopt;
  std::vector<Value> values_;                                             // of the graph, followed by partial sums
  bool split_backward_ = false;                                           // weight gradients are separate work
  std::map<std::tuple<graph::StateId, BodyId, int>, BufferId> gathered_;  // [bucket, body, layer]
  std::map<std::pair<graph::StateId, int>, size_t> gradients_;            // [accumulator's bucket, stage]: their number
  struct Staged {
    BufferId buffer = program::kNoBuffer;
    size_t left = 0;                // gradients still to come
    std::set<size_t> written = {};  // members
  };
  std::map<std::pair<graph::StateId, int>, Staged> staged_;  // [accumulator's bucket, stage]
};

}  // namespace kintsugi::lower
