// How the partitioner accumulates into states and replaces them.
#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/partition/partitioner.h"

namespace kintsugi::lower {

using graph::Op;
using graph::Role;
using graph::StateKind;
using program::kNoBuffer;
using program::Work;

void Partitioner::accumulate(const Op& op, BodyId body) {
  if (graph_->states()[op.state].kind == StateKind::gradient && op.phase == graph::Phase::update)
    return join_replicas(op, body);
  if (storage_.is_number(op.state) && emit_.stages().stages > 1) return accumulate_number(op, body);
  if (const Place* place = storage_.place(op.state)) return accumulate_gradient(op, *place, body);
  // A sum may stay partial until it is read, if its state permits.
  Layout goal;
  const bool parts = graph_->states()[op.state].parts;
  show_stored(op.ins[0], body);
  if (const std::optional<Layout> have = layout_of(op.ins[0]); have && parts && !plan_.units)
    for (const mesh::Part& p : have->partial()) goal.set_part(p.factor, p.combiner);
  const BufferId to = storage_.of(op.state, emit_.stage(body), &goal);
  const BufferId from = need(op.ins[0], buffer(to).layout, op, body);
  if (parts && plan_.units) {
    add_in_tree(from, to, site(op, body));
  } else {
    emit_.add_to(site(op, body), from, to);
  }
}

// A scalar of the run is the same on every stage.
void Partitioner::accumulate_number(const Op& op, BodyId body) {
  const Stages& stages = emit_.stages();
  const int own = emit_.body(body).chunk;
  const Work work = emit_.body(body).work;
  for (int stage : storage_.stages_of(op.state)) {
    const int chunk = stage == own % stages.stages ? own : stages.chunks() - stages.stages + stage;
    const BodyId there = emit_.body_for(work, chunk);
    const BufferId to = storage_.of(op.state, stage);
    const BufferId from = need(op.ins[0], {}, op, there);
    emit_.add_to(site(op, there), from, to);
  }
}

// The accumulator of another stage that uses the same weight is added to that of the weight's own stage before
// reduction, after all stages have finished their micro-batches, since either may be first.
void Partitioner::join_replicas(const Op& op, BodyId body) {
  const Stages& s = emit_.stages();
  const int layer = value(op.ins[0]).op->layer;
  if (s.stage(layer) == s.stage(op.layer)) return;
  const BufferId there = storage_.of(op.state, s.stage(layer));
  const BodyId from = emit_.body_for(Work::update, s.stage(layer));
  const BufferId got = emit_.message(there, from, site(op, body));
  emit_.add_to(site(op, body), got, storage_.of(op.state, emit_.stage(body)));
  joined_.insert(op.state);
}

// An accumulator has the layout in which its gradient arrives: if that is partial and not split further, it is reduced
// once, in "reduce". If the plan splits the accumulator, the gradients of a bucket are collected in a separate buffer
// and reduced as soon as the last has arrived.
void Partitioner::accumulate_gradient(const Op& op, const Place& place, BodyId body) {
  const Bucket& b = storage_.bucket(place.bucket);
  const graph::StateId weight = b.members[place.member].weight;
  const int stage = emit_.stage(body);
  show_stored(op.ins[0], body);
  const Layout have = *layout_of(op.ins[0]);
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
  const BufferId from = need(op.ins[0], goal, op, body);
  const BufferId accumulator = storage_.of(place.state, stage);
  if (b.gradient.of(kFlat).empty() && !plan_.units) {
    emit_.add_to(site(op, body), from, storage_.member(accumulator, op.state));
    return;
  }
  Staged& staged = staged_[{place.state, stage}];
  if (staged.buffer == kNoBuffer) {
    staged.buffer = storage_.block_of(place.bucket, buffer(accumulator).type.dtype, b.arriving, ".gradient");
    staged.left = gradients_.at({place.state, stage});
    if (const std::vector<BufferId> gaps = storage_.gaps(staged.buffer, place.bucket); !gaps.empty())
      emit_.compute(site(op, body), emit_.row("fill"), {{"value", 0.0}}, {}, gaps);
  }
  const BufferId member = storage_.member(staged.buffer, op.state);
  if (staged.written.insert(place.member).second) {
    emit_.replace(site(op, body), from, member);
  } else {
    emit_.add_to(site(op, body), from, member);
  }
  if (--staged.left > 0) return;
  // With a split backward pass, the last gradient is produced in the second part.
  const BodyId last = split_backward_ ? emit_.body_for(Work::weight, emit_.body(body).chunk) : body;
  Site where = site(op, last);
  where.by = "the accumulator";
  reduce_into(staged.buffer, b.gradient, accumulator, where);
}

void Partitioner::reduce_into(BufferId from, const Layout& goal, BufferId to, const Site& site) {
  for (const Step& s : conversion(buffer(from).layout, goal, plan_.units)) from = reduce(from, s, site);
  if (plan_.units) {
    add_in_tree(from, to, site);
  } else {
    emit_.add_to(site, from, to);
  }
}

// A step in the conversion of gradients, which may be in place, in the wire dtype.
BufferId Partitioner::reduce(BufferId from, const Step& s, const Site& site) {
  const program::Buffer source = buffer(from);
  const bool sums = s.move == Move::reduce_scatter || s.move == Move::all_reduce;
  const bool narrow_wire = plan_.wire != tensor::DType::f32;  // otherwise gradients are sent unchanged, including fp64
  if (!sums || !narrow_wire || tensor::size_of(plan_.wire) >= tensor::size_of(source.type.dtype))
    return emit_.move(from, s, site, true);
  const graph::OpRow& cast = emit_.row("cast");
  const auto to = [](tensor::DType d) { return tensor::Attributes{{"dtype", std::string(tensor::name_of(d))}}; };
  BufferId narrow = emit_.block(source.name + ".wire", {source.whole, plan_.wire}, s.before);
  emit_.compute(site, cast, to(plan_.wire), {from}, {narrow});
  narrow = emit_.move(narrow, s, site, true);
  const BufferId back = s.move == Move::all_reduce
                            ? emit_.view(from, source.name, {source.whole, source.type.dtype}, s.after, 0)
                        : emit_.contiguous(source.type.shape, s.to, s.factors)
                            ? emit_.part(from, s.after, s.factors)
                            : emit_.block(source.name, {source.whole, source.type.dtype}, s.after);
  emit_.compute(site, cast, to(source.type.dtype), {narrow}, {back});
  return back;
}

// Adds the sum of a micro-batch to the previous ones in a binary tree: a sum waits at its level for another of that
// level.
void Partitioner::add_in_tree(BufferId from, BufferId to, const Site& site) {
  int64_t count = 0;
  while ((int64_t{1} << count) < micro_batches_) ++count;
  std::vector<BufferId> outs = storage_.levels(to, count);
  outs.insert(outs.begin(), to);
  emit_.compute(site, emit_.row("accumulate"), {}, {from}, outs).adds_in_tree = true;
}

void Partitioner::assign(const Op& op, BodyId body) {
  const Work work = emit_.body(body).work;
  BodyId there = body;
  for (int stage : storage_.stages_of(op.state)) {
    if (stage != emit_.stage(there)) there = emit_.body_for(work, stage);
    assign_on_stage(op, there);
  }
}

void Partitioner::assign_on_stage(const Op& op, BodyId body) {
  const BufferId to = storage_.of(op.state, emit_.stage(body));
  const Layout goal = buffer(to).layout;
  show_stored(op.ins[0], body);
  const std::vector<Step> steps = conversion(*layout_of(op.ins[0]), goal);
  // A value that is gathered into a state is first written to the rank's own part of it.
  if (!steps.empty() && steps.back().move == Move::all_gather &&
      emit_.contiguous(buffer(to).type.shape, steps.back().from, steps.back().factors)) {
    const BufferId mine = emit_.part(to, steps.back().before, steps.back().factors);
    const BufferId from = need(op.ins[0], steps.back().before, op, body);
    emit_.replace(site(op, body), from, mine);
    emit_.gather_in_place(mine, to, steps.back(), site(op, body));
    return;
  }
  const BufferId from = need(op.ins[0], goal, op, body);
  const program::Program& p = emit_.program();
  if (p.root(from) == to && !p.is_part(from)) return;  // already written in place
  emit_.replace(site(op, body), from, to);
}

// The reduced accumulator: its first piece that is not partial.
void Partitioner::record_reduced(const Value& v, int stage) {
  const BufferId stored = storage_.of(v.op->state, stage);
  for (const Piece& p : v.pieces) {
    if (!p.layout.partial().empty()) continue;
    reduced_.try_emplace(stored, p.buffer);
    return;
  }
}

}  // namespace kintsugi::lower
