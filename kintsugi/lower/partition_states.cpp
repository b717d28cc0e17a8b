// How the partitioner adds to states and replaces them.
#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/partitioner.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower {

using graph::Op;
using graph::StateKind;
using program::kNoBuffer;

namespace {

constexpr uint32_t kAdd = 1, kReplace = 0;

const graph::OpRow& accumulate_row() {
  return ops::operations().find("accumulate");
}

}  // namespace

void Partitioner::accumulate(const Op& op) {
  if (graph_->states()[op.state].kind == StateKind::gradient && op.phase == graph::Phase::update)
    return join_copies(op);
  if (storage_.is_number(op.state) && emit_.stages().stages > 1) return accumulate_number(op);
  if (const Place* place = storage_.place(op.state)) return accumulate_gradient(op, *place);
  // A sum may stay in parts until it is read, where its state says so.
  Layout goal;
  const bool parts = graph_->states()[op.state].parts;
  if (const std::optional<Layout> have = standing(op.ins[0]); have && parts && !plan_.units)
    for (const mesh::Part& p : have->partial()) goal.set_part(p.factor, p.combiner);
  const BufferId to = storage_.of(op.state, &goal);
  const BufferId from = need(op.ins[0], emit_.program().buffer(to).layout, op);
  if (parts && plan_.units) {
    add_up(from, to, op);
  } else {
    emit_.compute(asked(op), *op.row, {}, {from}, {to}, "accumulate", kAdd);
  }
}

// A number of the run is the same on every stage.
void Partitioner::accumulate_number(const Op& op) {
  const std::string work = emit_.work();
  const int chunks = emit_.stages().chunks(), here = emit_.chunk();
  for (int stage : storage_.stages_of(op.state)) {
    emit_.enter(work, stage == here % emit_.stages().stages ? here : chunks - emit_.stages().stages + stage);
    emit_.compute(asked(op), *op.row, {}, {need(op.ins[0], {}, op)}, {storage_.of(op.state)}, "accumulate", kAdd);
  }
}

// The accumulator of another stage that uses the same weight is added to the one at home, before that is reduced: when
// all stages are done with their micro-batches, since either may be the first.
void Partitioner::join_copies(const Op& op) {
  const Stages& s = emit_.stages();
  const int layer = value(op.ins[0]).op->layer;
  if (s.stage(layer) == s.stage(op.layer)) return;
  const std::string here = emit_.selected();
  const BufferId there = storage_.of(op.state, nullptr, s.stage(layer));
  emit_.enter("update", s.stage(layer));
  const std::string from = emit_.selected();
  emit_.select(here);
  const BufferId got = emit_.message(there, from, asked(op));
  emit_.compute(asked(op), accumulate_row(), {}, {got}, {storage_.of(op.state)}, "accumulate", kAdd);
  joined_.insert(op.state);
}

// An accumulator is stored as its gradient comes: what is partial and not split further is reduced once, in "reduce".
// Where the plan splits the accumulator, the gradients of a bucket meet in a buffer of their own and are reduced as
// soon as the last of them is there.
void Partitioner::accumulate_gradient(const Op& op, const Place& place) {
  const Bucket& b = storage_.bucket(place.bucket);
  const graph::StateId weight = b.members[place.member].weight;
  const Layout have = *standing(op.ins[0]);
  Layout parts;
  const std::vector<Factor> shard = b.shard();
  const auto known = arrivals_.find(weight);
  for (const mesh::Part& p : have.partial())
    if (p.combiner == mesh::Combiner::sum && std::find(shard.begin(), shard.end(), p.factor) == shard.end() &&
        (known == arrivals_.end() || known->second.part(p.factor)))
      parts.set_part(p.factor, p.combiner);
  arrivals_[weight] = parts;

  Layout goal = b.layout;
  for (const mesh::Part& p : b.arriving.partial()) goal.set_part(p.factor, p.combiner);
  const BufferId from = need(op.ins[0], goal, op);
  const BufferId accumulator = storage_.of(place.state);
  if (b.gradient.of("flat").empty() && !plan_.units) {
    emit_.compute(asked(op), *op.row, {}, {from}, {storage_.member(accumulator, op.state)}, "accumulate", kAdd);
    return;
  }
  Staged& staged = staged_[{place.state, emit_.stage()}];
  if (staged.buffer == kNoBuffer) {
    const tensor::DType dtype = emit_.program().buffer(accumulator).type.dtype;
    staged.buffer = storage_.room(place.bucket, dtype, b.arriving, ".gradient");
    for (const Op& other : graph_->ops())
      if (other.kind() == "accumulate")
        if (const Place* p = storage_.place(other.state);
            p && p->state == place.state && emit_.stages().stage(other.layer) == emit_.stage())
          ++staged.left;
    if (const std::vector<BufferId> gaps = storage_.gaps(staged.buffer, place.bucket); !gaps.empty())
      emit_.compute(asked(op), ops::operations().find("fill"), {{"value", 0.0}}, {}, gaps);
  }
  const uint32_t how = staged.written.insert(place.member).second ? kReplace : kAdd;
  emit_.compute(asked(op), *op.row, {}, {from}, {storage_.member(staged.buffer, op.state)}, "accumulate", how);
  if (--staged.left > 0) return;
  if (apart_) emit_.enter("weight", emit_.chunk());  // the later of the two parts
  reduce_into(staged.buffer, b.gradient, accumulator, op);
}

void Partitioner::reduce_into(BufferId from, const Layout& goal, BufferId to, const Op& op) {
  for (const Step& s : conversion(emit_.program().buffer(from).layout, goal, plan_.units))
    from = reduce(from, s, asked(op, "the accumulator"));
  if (plan_.units) {
    add_up(from, to, op);
  } else {
    emit_.compute(asked(op), accumulate_row(), {}, {from}, {to}, "accumulate", kAdd);
  }
}

// A step on the way of gradients, which may be worked on in place; they travel in the dtype of the wire.
BufferId Partitioner::reduce(BufferId from, const Step& s, const Asked& asked) {
  const program::Buffer source = emit_.program().buffer(from);
  const bool sums = s.move == Move::reduce_scatter || s.move == Move::all_reduce;
  const bool narrow_wire = plan_.wire != tensor::DType::f32;  // which leaves gradients as they are, fp64 too
  if (!sums || !narrow_wire || tensor::size_of(plan_.wire) >= tensor::size_of(source.type.dtype))
    return emit_.move(from, s, asked, true);
  const graph::OpRow& cast = ops::operations().find("cast");
  const auto to = [](tensor::DType d) { return tensor::Attributes{{"dtype", std::string(tensor::name_of(d))}}; };
  BufferId narrow = emit_.block(source.name + ".wire", {source.whole, plan_.wire}, s.before);
  emit_.compute(asked, cast, to(plan_.wire), {from}, {narrow});
  narrow = emit_.move(narrow, s, asked, true);
  const BufferId back = s.move == Move::all_reduce
                            ? emit_.view(from, source.name, {source.whole, source.type.dtype}, s.after, 0)
                        : emit_.contiguous(source.type.shape, s.to, s.factors)
                            ? emit_.part(from, s.after, s.factors)
                            : emit_.block(source.name, {source.whole, source.type.dtype}, s.after);
  emit_.compute(asked, cast, to(source.type.dtype), {narrow}, {back});
  return back;
}

// Adds the sum of a micro-batch to those before it in a binary tree: a sum waits at its level until its like comes.
// `schedule` writes out what that is for each micro-batch.
void Partitioner::add_up(BufferId from, BufferId to, const Op& op) {
  int64_t count = 0;
  while ((int64_t{1} << count) < micro_batches_) ++count;
  std::vector<BufferId> outs = storage_.levels(to, count);
  outs.insert(outs.begin(), to);
  emit_.compute(asked(op), accumulate_row(), {{"tree", int64_t{1}}}, {from}, outs, "accumulate", kReplace);
}

void Partitioner::assign(const Op& op) {
  const std::string here = emit_.selected();
  for (int stage : storage_.stages_of(op.state)) {
    if (stage != emit_.stage()) emit_.enter(emit_.work(), stage);
    assign_here(op);
  }
  emit_.select(here);
}

void Partitioner::assign_here(const Op& op) {
  const BufferId to = storage_.of(op.state);
  const Layout goal = emit_.program().buffer(to).layout;
  const std::vector<Step> steps = conversion(*standing(op.ins[0]), goal);
  // What is gathered into a state is first written to its place there.
  if (!steps.empty() && steps.back().move == Move::all_gather &&
      emit_.contiguous(emit_.program().buffer(to).type.shape, steps.back().from, steps.back().factors)) {
    const BufferId mine = emit_.part(to, steps.back().before, steps.back().factors);
    const BufferId from = need(op.ins[0], steps.back().before, op);
    emit_.compute(asked(op), accumulate_row(), {}, {from}, {mine}, "accumulate", kReplace);
    emit_.gather_in_place(mine, to, steps.back(), asked(op));
    return;
  }
  const BufferId from = need(op.ins[0], goal, op);
  if (emit_.program().root(from) == to && !emit_.program().is_part(from)) return;  // written in place already
  emit_.compute(asked(op), accumulate_row(), {}, {from}, {to}, "accumulate", kReplace);
}

}  // namespace kintsugi::lower
