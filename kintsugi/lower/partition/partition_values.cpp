// How an operation obtains its operands. A value is one or several pieces: the same elements in different layouts, or
// on different stages. Invariants:
//  - every piece of a value can be converted to every layout that is partial over no more factors; a piece with a
//    fetched halo only to its own layout, and each value also has another piece;
//  - a body uses only pieces of its stage that every body may use, or its own;
//  - the overwritten piece of an accumulator that was reduced in place is removed.
#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/lower/partition/partitioner.h"

namespace kintsugi::lower {

using graph::Op;
using graph::Role;
using graph::StateKind;
using program::kNoBuffer;
using program::Work;

namespace {

bool is_state(const Op* op) {
  return op && op->role() == Role::read_state;
}

// Whether every partial factor of `some` is also in `all`.
bool has_parts(const Layout& all, const Layout& some) {
  return std::all_of(some.partial().begin(), some.partial().end(), [&](const mesh::Part& p) {
    return all.part(p.factor) && all.part(p.factor)->combiner == p.combiner;
  });
}

}  // namespace

// Call before requesting a layout. Adds the stored piece of a state that is not a parameter's: on the stage of the
// read; for a scalar of the run on that of the body; in the update on the state's first stage if the stage of the read
// lacks it. Other values, and parameters, are unchanged.
void Partitioner::show_stored(Id id, BodyId body) {
  Value& v = value(id);
  if (!is_state(v.op) || storage_.place(v.op->state)) return;
  const graph::StateId state = v.op->state;
  const bool number = storage_.is_number(state);
  if (!v.pieces.empty() && !number) return;
  int stage = number ? emit_.stage(body) : emit_.stages().stage(v.op->layer);
  const std::vector<int> has = storage_.stages_of(state);
  if (v.op->phase == graph::Phase::update && std::find(has.begin(), has.end(), stage) == has.end()) stage = has[0];
  if (std::any_of(v.pieces.begin(), v.pieces.end(), [&](const Piece& p) { return p.stage == stage; })) return;
  const BufferId b = storage_.of(state, stage);
  v.pieces.push_back({b, buffer(b).layout, kNoBody, stage});
}

// The layout of the piece with the least left to reduce; none if the value is free to make in any.
std::optional<Layout> Partitioner::layout_of(Id id) const {
  const Value& v = value(id);
  if (v.op && v.op->row->free) return std::nullopt;
  if (is_state(v.op) && v.pieces.empty())
    if (const Place* place = storage_.place(v.op->state)) return storage_.bucket(place->bucket).layout;
  base::require(!v.pieces.empty(), "partition", "\"{}\" is used before it is made", v.name);
  return std::min_element(
             v.pieces.begin(), v.pieces.end(),
             [](const Piece& a, const Piece& b) { return a.layout.partial().size() < b.layout.partial().size(); })
      ->layout;
}

// A buffer that holds the value in the layout `goal` and that `body` may use.
BufferId Partitioner::need(Id id, const Layout& goal, const Op& op, BodyId body) {
  if (value(id).op && value(id).op->row->free) return make_free(id, goal, op, body);
  show_stored(id, body);
  locate(id, goal, op, body);
  return convert(id, choose_source(value(id), goal, body), goal, op, body);
}

bool Partitioner::may_use(const Piece& piece, BodyId body) const {
  return piece.stage == emit_.stage(body) && (piece.only_body == kNoBody || piece.only_body == body);
}

// Ensures that the body may use some piece of the value: a parameter as stored in its bucket, or a message from another
// stage.
void Partitioner::locate(Id id, const Layout& goal, const Op& op, BodyId body) {
  const std::vector<Piece>& pieces = value(id).pieces;
  if (std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return may_use(p, body); })) return;
  if (is_state(value(id).op) && storage_.place(value(id).op->state)) {
    Piece stored = stored_parameter(*value(id).op, op, body);
    value(id).pieces.push_back(std::move(stored));
  } else {
    receive(id, goal, op, body);
  }
}

// Of the pieces that the body may use, the cheapest to convert to the goal: by bytes sent, then by steps.
Partitioner::Piece Partitioner::choose_source(const Value& v, const Layout& goal, BodyId body) const {
  const auto suits = [&](const Piece& piece) {
    return may_use(piece, body) && has_parts(piece.layout, goal) && halos_allow(piece.layout, goal);
  };
  const auto only = std::ranges::find_if(v.pieces, suits);
  if (only != v.pieces.end() && std::none_of(only + 1, v.pieces.end(), suits)) return *only;
  const Piece* best = nullptr;
  double least = 0;
  for (const Piece& piece : v.pieces) {
    if (!suits(piece)) continue;
    const std::vector<Step> steps = conversion(piece.layout, goal);
    double sent = 0;
    for (const Step& s : steps) sent += traffic(plan_.mesh, v.type.shape, s);
    sent += 1e-6 * static_cast<double>(steps.size());
    if (best && sent >= least) continue;
    best = &piece;
    least = sent;
  }
  if (!best)
    throw base::InternalError("partition", "no piece of \"{}\" can become {}", v.name, to_string(plan_.mesh, goal));
  return *best;
}

// Emits the steps from the source to the goal, and keeps each result as a piece. A gathered activation belongs to the
// requesting body, and so do requests of weight gradients, since the rest of the backward pass is over by then.
// Accumulators are reduced once per step, as soon as the last gradient is there, possibly in place.
BufferId Partitioner::convert(Id id, Piece piece, const Layout& goal, const Op& op, BodyId body) {
  Value& v = value(id);
  const bool accumulator = is_state(v.op) && graph_->states()[v.op->state].kind == StateKind::gradient;
  const std::vector<Step> way = conversion(piece.layout, goal, plan_.units);
  const bool once_a_step = accumulator && !way.empty() && !joined_.contains(v.op->state);
  const BodyId where = once_a_step ? emit_.body_for(Work::reduce, emit_.stages().chunk(v.op->layer)) : body;
  const int stage = emit_.stage(body);
  for (const Step& s : way) {
    const bool gathered = s.move == Move::all_gather && !(plan_.keep && !is_state(v.op));
    const bool weight_gradient = emit_.body(where).work == Work::weight;
    const BufferId source = piece.buffer;
    const BufferId made =
        accumulator ? reduce(source, s, site(op, where)) : emit_.move(source, s, site(op, where), false);
    piece = {made, s.after, gathered || weight_gradient ? body : piece.only_body, stage, body};
    if (accumulator && emit_.program().overlap(source, made) && s.move != Move::slice)
      std::erase_if(v.pieces, [&](const Piece& p) { return emit_.program().overlap(p.buffer, source); });
    v.pieces.push_back(piece);
  }
  if (accumulator) record_reduced(v, emit_.stage(where));
  return piece.buffer;
}

// The smallest piece that any body may use, on any stage, or null.
const Partitioner::Piece* Partitioner::smallest_to_send(Id id, const Layout& goal) const {
  const Piece* best = nullptr;
  for (const Piece& p : value(id).pieces) {
    if (p.only_body != kNoBody || !has_parts(goal, p.layout) || p.layout.has_halos()) continue;
    if (!best || buffer(p.buffer).bytes() < buffer(best->buffer).bytes()) best = &p;
  }
  return best;
}

// The body at whose end a piece is available: states are available in the update.
BodyId Partitioner::maker_of(const Piece& piece) {
  return piece.made_in == kNoBody ? emit_.body_for(Work::update, piece.stage) : piece.made_in;
}

// A message from another stage, of its smallest piece, reduced before it is sent. A value that both parts of a backward
// pass need is received in the first.
void Partitioner::receive(Id id, const Layout& goal, const Op& op, BodyId body) {
  const BodyId to =
      emit_.body(body).work == Work::weight ? emit_.body_for(Work::backward, emit_.body(body).chunk) : body;
  if (!smallest_to_send(id, goal)) {
    base::require(!value(id).pieces.empty(), "partition", "\"{}\" is on no stage", value(id).name);
    Op there = op;
    there.layer = layer_of(id);
    need(id, goal, there, maker_of(value(id).pieces[0]));
  }
  const Piece* found = smallest_to_send(id, goal);
  base::require(found != nullptr, "partition", "no piece of \"{}\" can be sent", value(id).name);
  const Piece source = *found;
  BodyId from = maker_of(source);
  BufferId b = source.buffer;
  for (const BodyId next : way(from, to)) {
    b = emit_.message(b, from, site(op, next));
    value(id).pieces.push_back({b, source.layout, kNoBody, emit_.stage(next), next});
    from = next;
  }
}

// The bodies that receive a message, in order; the last is on the stage of `to`. Within a forward or backward pass a
// value goes through the chunks in between: a message to a distant stage would wait until that stage reaches its
// micro-batch, and with it all later messages of its sender (the last level of a U-Net reads the first).
std::vector<BodyId> Partitioner::way(BodyId from, BodyId to) {
  const Work work = emit_.body(to).work;
  const int first = emit_.body(from).chunk, last = emit_.body(to).chunk;
  const bool forward = work == Work::forward && first < last, backward = work == Work::backward && first > last;
  if (emit_.body(from).work != work || !(forward || backward)) return {to};
  const int step = forward ? 1 : -1;
  std::vector<BodyId> list;
  for (int chunk = first + step; chunk != last; chunk += step) {
    list.push_back(emit_.body_for(work, chunk));
    if (emit_.stage(list.back()) == emit_.stage(to)) return list;
  }
  list.push_back(to);
  return list;
}

// A parameter as stored in its bucket; if the bucket's flat dim is split, gathers the bucket for the body.
Partitioner::Piece Partitioner::stored_parameter(const Op& read, const Op& op, BodyId body) {
  const Place& place = *storage_.place(read.state);
  const Bucket& b = storage_.bucket(place.bucket);
  const BufferId whole = storage_.of(place.state, emit_.stage(body));
  const bool split = !buffer(whole).layout.of(kFlat).empty();
  const BufferId from = split ? gathered(place.bucket, place.state, op, body) : whole;
  return {storage_.member(from, read.state), b.layout, split ? body : kNoBody, emit_.stage(body)};
}

// A bucket with flat whole, gathered once per layer and requesting body.
BufferId Partitioner::gathered(int bucket, graph::StateId state, const Op& op, BodyId body) {
  const auto key = std::tuple(state, body, op.layer);
  if (const auto i = gathered_.find(key); i != gathered_.end()) return i->second;
  BufferId b = storage_.of(state, emit_.stage(body));
  for (const Step& s : conversion(buffer(b).layout, storage_.bucket(bucket).flat_layout({})))
    b = emit_.move(b, s, site(op, body), false);
  return gathered_[key] = b;
}

// A free value is materialized in each requested layout, once per body; an input once per stage, however many values
// have its name and dims.
BufferId Partitioner::make_free(Id id, const Layout& goal, const Op& op, BodyId body) {
  const Op& maker = *value(id).op;
  const bool input = maker.role() == Role::input;
  const BodyId only_body = input ? kNoBody : body;
  const int stage = emit_.stage(body);
  if (input)
    for (const Value& v : values_)
      for (const Piece& p : v.pieces)
        if (buffer(p.buffer).input == maker.attributes.text("name") && buffer(p.buffer).whole == value(id).type.shape &&
            p.layout == goal && p.stage == stage)
          return p.buffer;
  for (const Piece& p : value(id).pieces)
    if (p.layout == goal && p.only_body == only_body && p.stage == stage) return p.buffer;
  std::vector<BufferId> ins;
  for (Id in : maker.ins) {
    Layout l;
    for (const mesh::Split& s : goal.splits())
      if (value(in).type.shape.has(s.dim)) l.set(s.dim, s.factors, s.halo);
    ins.push_back(need(in, l, op, body));
  }
  const BufferId b = emit_.block(value(id).name, value(id).type, goal);
  if (input) {
    emit_.program().buffer(b).input = maker.attributes.text("name");
  } else {
    emit_.compute(site(op, body), *maker.row, maker.attributes, ins, {b}, maker.absent);
    clear_padding(maker, b, body);
  }
  value(id).pieces.push_back({b, goal, only_body, stage, body});
  return b;
}

}  // namespace kintsugi::lower
