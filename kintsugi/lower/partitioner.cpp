#include "kintsugi/lower/partitioner.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/ops/rows.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::Op;
using graph::StateKind;
using program::kNoBuffer;

namespace {

std::string work_of(const Graph& g, const Op& op) {
  if (op.phase == graph::Phase::update) return "update";
  if (g.name() != "micro-batch") return g.name();
  return op.phase == graph::Phase::forward ? "forward" : op.phase == graph::Phase::weight ? "weight" : "backward";
}

bool is_state(const Op* op) {
  return op && op->kind() == "state";
}

bool contains(const Layout& all, const Layout& some) {
  return std::all_of(some.partial().begin(), some.partial().end(), [&](const mesh::Part& p) {
    return all.part(p.factor) && all.part(p.factor)->combiner == p.combiner;
  });
}

}  // namespace

void Partitioner::run(const Graph& g) {
  graph_ = &g;
  values_.clear();
  gathered_.clear();
  staged_.clear();
  apart_ = std::any_of(g.ops().begin(), g.ops().end(), [](const Op& op) { return op.phase == graph::Phase::weight; });
  for (const graph::Value& v : g.values())
    values_.push_back({v.name, v.type, v.op < 0 ? nullptr : &g.op_at(static_cast<size_t>(v.op)), {}});
  for (const Op& op : g.ops()) {
    if (is_state(&op) || op.row->free) continue;
    enter(op);
    if (!op.row->variadic && !op.row->chained) {
      take(op);
      continue;
    }
    for (const Op& part : op.row->chained ? chained(op) : grouped(op)) {
      enter(part);
      take(part);
    }
  }
}

void Partitioner::enter(const Op& op) {
  const std::string work = work_of(*graph_, op);
  const Stages& s = emit_.stages();
  emit_.enter(work, work == "update" ? s.stage(op.layer) : s.chunk(op.layer), work == "prefill" || work == "decode");
}

void Partitioner::take(const Op& op) {
  if (op.kind() == "accumulate") return accumulate(op);
  if (op.kind() == "assign") return assign(op);
  if (op.kind() == "output") {
    emit_.program().buffer(need(op.ins[0], {}, op)).output = op.attributes.text("name");
    return;
  }
  compute(op);
}

Asked Partitioner::asked(const Op& op, const std::string& by) const {
  return {.by = by.empty() ? std::string(op.kind()) : by, .phase = std::string(name_of(op.phase)), .layer = op.layer};
}

void Partitioner::compute(const Op& op) {
  Operation o = {.row = *op.row, .attributes = op.attributes, .ins = {}, .outs = {}, .absent = op.absent};
  std::vector<std::optional<Layout>> have;
  for (Id v : op.ins) {
    o.ins.push_back(value(v).type.shape);
    have.push_back(standing(v));
  }
  for (Id v : op.outs) o.outs.push_back(value(v).type.shape);
  const Choice c = choose(o, have, plan_);
  for (const auto& [dim, factors] : c.splits) used_.insert(factors.begin(), factors.end());
  if (!c.steps.empty()) return compute_in_steps(op, c);

  std::vector<BufferId> ins, outs;
  for (size_t i = 0; i < op.ins.size(); ++i) ins.push_back(need(op.ins[i], c.ins[i], op));
  const bool shares = op.row->view || op.row->must_share;
  for (size_t i = 0; i < op.outs.size(); ++i) {
    const Value& v = value(op.outs[i]);
    outs.push_back(shares ? emit_.view(ins[0], v.name, v.type, c.outs[i], 0) : emit_.block(v.name, v.type, c.outs[i]));
  }
  if (!op.row->view) {
    emit_.compute(asked(op), *op.row, op.attributes, ins, outs, {}, 0, op.absent);
    for (BufferId b : outs) clear_padding(op, b);
  }
  for (size_t i = 0; i < op.outs.size(); ++i)
    value(op.outs[i]).pieces = {{outs[i], c.outs[i], {}, emit_.stage(), emit_.selected()}};
}

// Padding is zero in every value, by selection: a kernel may have left anything there.
void Partitioner::clear_padding(const Op& op, BufferId b) {
  const program::Buffer buffer = emit_.program().buffer(b);
  bool padded = false;
  for (const tensor::Dim& d : buffer.whole) {
    if (!mesh::is_padded(plan_.mesh, d.name, d.size, buffer.layout.of(d.name))) continue;
    const bool lacks =
        std::any_of(op.ins.begin(), op.ins.end(), [&](Id v) { return !value(v).type.shape.has(d.name); });
    padded |= !op.row->keeps_zero || (op.row->variadic && lacks);
  }
  if (padded) emit_.compute(asked(op), ops::operations().find("mask"), {}, {b}, {b});
}

// In turn t every rank works on the pieces of the rank t places on in the ring; see Liu, Zaharia, Abbeel 2023,
// section 3.
void Partitioner::compute_in_steps(const Op& op, const Choice& c) {
  const std::vector<Factor>& ring = c.steps.begin()->second;
  const auto travels = [&](Id v) {
    return std::any_of(c.steps.begin(), c.steps.end(), [&](const auto& s) { return value(v).type.shape.has(s.first); });
  };
  const int64_t turns = plan_.mesh.count(ring);
  std::vector<BufferId> ins, total(op.outs.size(), kNoBuffer);
  for (size_t i = 0; i < op.ins.size(); ++i) ins.push_back(need(op.ins[i], c.ins[i], op));
  const auto& table = ops::operations();
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<BufferId> next = ins, outs;
    if (turn + 1 < turns)
      for (size_t i = 0; i < ins.size(); ++i)
        if (travels(op.ins[i])) next[i] = emit_.shift(ins[i], ring, asked(op));
    for (size_t i = 0; i < op.outs.size(); ++i) {
      const Value& v = value(op.outs[i]);
      const BufferId b = emit_.block(v.name, v.type, c.outs[i]);
      if (travels(op.outs[i])) {
        emit_.program().buffer(b).ring = ring;
        emit_.program().buffer(b).turn = turn;
      }
      outs.push_back(b);
    }
    emit_.compute(asked(op), *op.row, op.attributes, ins, outs, {}, 0, op.absent);
    for (BufferId b : outs) clear_padding(op, b);
    if (turn == 0) {
      total = outs;
    } else if (!op.row->join.empty()) {
      std::vector<BufferId> both = total, joined;
      both.insert(both.end(), outs.begin(), outs.end());
      for (size_t i = 0; i < op.outs.size(); ++i)
        joined.push_back(emit_.block(value(op.outs[i]).name, value(op.outs[i]).type, c.outs[i]));
      emit_.compute(asked(op), table.find(op.row->join), {}, both, joined);
      total = joined;
    } else {
      for (size_t i = 0; i < op.outs.size(); ++i) {
        const BufferId sum = emit_.block(value(op.outs[i]).name, value(op.outs[i]).type, c.outs[i]);
        emit_.program().buffer(sum).ring = emit_.program().buffer(outs[i]).ring;
        emit_.program().buffer(sum).turn = turn;
        emit_.compute(asked(op), table.find("add"), {}, {total[i], outs[i]}, {sum});
        total[i] = sum;
      }
    }
    // What was made of a piece goes with it, and after the last turn it is at home.
    for (size_t i = 0; i < op.outs.size(); ++i)
      if (travels(op.outs[i])) total[i] = emit_.shift(total[i], ring, asked(op));
    ins = next;
  }
  for (size_t i = 0; i < op.outs.size(); ++i) {
    emit_.program().buffer(total[i]).ring.clear();
    emit_.program().buffer(total[i]).turn = 0;
    value(op.outs[i]).pieces = {{total[i], c.outs[i], {}, emit_.stage(), emit_.selected()}};
  }
}

// On which stage a value is: that of the operation that asks where it can be had there.
int Partitioner::stage_of(Id v, const Op& op) {
  const int here = emit_.stages().stage(op.layer);
  if (!standing(v)) return here;
  const std::vector<Piece>& pieces = value(v).pieces;
  const bool has =
      pieces.empty() || std::any_of(pieces.begin(), pieces.end(), [&](const Piece& p) { return p.stage == here; });
  return has ? here : pieces[0].stage;
}

// A sum joins first what is partial alike and on one stage, so that each group is reduced and sent once.
std::vector<Op> Partitioner::grouped(const Op& op) {
  struct Group {
    std::vector<mesh::Part> partial;
    int stage;
    std::vector<Id> members;
  };
  std::vector<Group> groups;
  const int here = emit_.stages().stage(op.layer);
  for (Id v : op.ins) {
    const std::optional<Layout> l = standing(v);
    const std::vector<mesh::Part> partial = l ? l->partial() : std::vector<mesh::Part>();
    const int stage = stage_of(v, op);
    auto g = std::find_if(groups.begin(), groups.end(),
                          [&](const Group& known) { return known.partial == partial && known.stage == stage; });
    if (g == groups.end()) g = groups.insert(groups.end(), {partial, stage, {}});
    g->members.push_back(v);
  }
  if (groups.size() == 1) {
    Op one = op;
    // Where all are on another stage they are added there, and one is sent.
    const int of = layer_of(op.ins[0]);
    if (op.ins.size() > 1 && groups[0].stage != here && emit_.stages().stage(of) == groups[0].stage) one.layer = of;
    return {one};
  }
  std::vector<Op> parts;
  Op rest = op;
  rest.ins.clear();
  for (auto& [partial, stage, members] : groups) {
    if ((partial.empty() && stage == here) || members.size() == 1) {
      rest.ins.insert(rest.ins.end(), members.begin(), members.end());
      continue;
    }
    // The sum of a group has the dims of its largest member.
    const Id largest = *std::max_element(members.begin(), members.end(), [&](Id a, Id b) {
      return value(a).type.shape.rank() < value(b).type.shape.rank();
    });
    std::stable_sort(members.begin(), members.end(),
                     [&](Id a, Id b) { return value(a).type.shape.rank() > value(b).type.shape.rank(); });
    Op part = op;
    if (stage != here) part.layer = layer_of(members[0]);
    part.ins = members;
    part.outs = {static_cast<Id>(values_.size())};
    values_.push_back({value(op.outs[0]).name + ".part", value(largest).type, nullptr, {}});
    rest.ins.push_back(part.outs[0]);
    parts.push_back(std::move(part));
  }
  parts.push_back(std::move(rest));
  return parts;
}

// What is added up in order goes on where its operands are, from stage to stage.
std::vector<Op> Partitioner::chained(const Op& op) {
  std::vector<Op> parts;
  int stage = -1;
  for (Id v : op.ins) {
    const int now = stage_of(v, op);
    if (now != stage) {
      Op part = op;
      part.ins.clear();
      part.layer = layer_of(v);
      if (!parts.empty()) {
        parts.back().outs = {static_cast<Id>(values_.size())};
        values_.push_back({value(op.outs[0]).name + ".part", value(op.outs[0]).type, nullptr, {}});
        part.ins = parts.back().outs;
      }
      parts.push_back(std::move(part));
    }
    stage = now;
    parts.back().ins.push_back(v);
  }
  return parts;
}

int Partitioner::layer_of(Id v) const {
  const Op* op = values_[static_cast<size_t>(v)].op;
  return op ? op->layer : 0;
}

// The layout of a value with the least left to reduce; none: free to make.
std::optional<Layout> Partitioner::standing(Id id) {
  Value& v = value(id);
  if (v.op && v.op->row->free) return std::nullopt;
  if (is_state(v.op)) {
    const Place* place = storage_.place(v.op->state);
    if (place && v.pieces.empty()) return storage_.bucket(place->bucket).layout;
    if (!place) add_stored(v);
  }
  base::require(!v.pieces.empty(), "partition", "\"{}\" is used before it is made", v.name);
  return std::min_element(
             v.pieces.begin(), v.pieces.end(),
             [](const Piece& a, const Piece& b) { return a.layout.partial().size() < b.layout.partial().size(); })
      ->layout;
}

// A state that is not a parameter's, where it is read: on the stage of the read, a number of the run on the one that is
// selected, and in the update where it is at home if that stage has it not.
void Partitioner::add_stored(Value& v) {
  const graph::StateId state = v.op->state;
  const bool number = storage_.is_number(state);
  if (!v.pieces.empty() && !number) return;
  int stage = number ? emit_.stage() : emit_.stages().stage(v.op->layer);
  const std::vector<int> has = storage_.stages_of(state);
  if (v.op->phase == graph::Phase::update && std::find(has.begin(), has.end(), stage) == has.end()) stage = has[0];
  if (std::any_of(v.pieces.begin(), v.pieces.end(), [&](const Piece& p) { return p.stage == stage; })) return;
  const BufferId b = storage_.of(state, nullptr, stage);
  v.pieces.push_back({b, emit_.program().buffer(b).layout, {}, stage});
}

// A parameter as its bucket has it; where the bucket's flat dim is split, the bucket is gathered, once for each layer
// and body that asks.
Partitioner::Piece Partitioner::stored(const Op& read, const Op& op) {
  const Place& place = *storage_.place(read.state);
  const Bucket& b = storage_.bucket(place.bucket);
  const BufferId whole = storage_.of(place.state);
  const bool split = !emit_.program().buffer(whole).layout.of("flat").empty();
  const BufferId from = split ? gathered(place.bucket, place.state, op) : whole;
  return {storage_.member(from, read.state), b.layout, split ? emit_.selected() : std::string(), emit_.stage()};
}

// A message from another stage, of the piece that is smallest there; reduced before it is sent.
void Partitioner::bring(Id id, const Layout& goal, const Op& op) {
  const std::string asker = emit_.selected();
  // What both parts of a backward pass need comes to the earlier.
  if (emit_.work() == "weight") emit_.enter("backward", emit_.chunk());
  const std::string here = emit_.selected();
  const auto find = [&]() -> const Piece* {
    const Piece* best = nullptr;
    for (const Piece& p : value(id).pieces) {
      if (!p.body.empty() || !contains(goal, p.layout)) continue;
      if (!best || emit_.program().buffer(p.buffer).bytes() < emit_.program().buffer(best->buffer).bytes()) best = &p;
    }
    return best;
  };
  const auto enter_maker = [&](const Piece& p) {
    if (p.made.empty()) {
      emit_.enter("update", p.stage);
    } else {
      emit_.select(p.made);
    }
  };
  Op there = op;
  there.layer = layer_of(id);
  if (!find()) {
    base::require(!value(id).pieces.empty(), "partition", "\"{}\" is on no stage", value(id).name);
    enter_maker(value(id).pieces[0]);
    need(id, goal, there);
  }
  const Piece* found = find();
  base::require(found != nullptr, "partition", "no piece of \"{}\" can be sent", value(id).name);
  const Piece source = *found;
  enter_maker(source);
  const std::string from = emit_.selected();
  emit_.select(here);
  const BufferId b = emit_.message(source.buffer, from, asked(op));
  value(id).pieces.push_back({b, source.layout, {}, emit_.stage(), here});
  emit_.select(asker);
}

BufferId Partitioner::gathered(int bucket, graph::StateId state, const Op& op) {
  const auto key = std::tuple(state, emit_.selected(), op.layer);
  if (const auto i = gathered_.find(key); i != gathered_.end()) return i->second;
  BufferId b = storage_.of(state);
  for (const Step& s : conversion(emit_.program().buffer(b).layout, storage_.bucket(bucket).flat_layout({})))
    b = emit_.move(b, s, asked(op), false);
  return gathered_[key] = b;
}

BufferId Partitioner::need(Id id, const Layout& goal, const Op& op) {
  if (value(id).op && value(id).op->row->free) return make_free(id, goal, op);
  standing(id);
  const std::string body = emit_.selected();
  const int stage = emit_.stage();
  const auto lives = [&](const Piece& p) { return p.stage == stage && (p.body.empty() || p.body == body); };
  if (std::none_of(value(id).pieces.begin(), value(id).pieces.end(), lives)) {
    if (is_state(value(id).op) && storage_.place(value(id).op->state)) {
      const Piece piece = stored(*value(id).op, op);
      value(id).pieces.push_back(piece);
    } else {
      bring(id, goal, op);
    }
  }
  Value& v = value(id);

  size_t best = v.pieces.size();
  double least = 0;
  for (size_t i = 0; i < v.pieces.size(); ++i) {
    if (!lives(v.pieces[i]) || !contains(v.pieces[i].layout, goal)) continue;
    double sent = 0;
    const std::vector<Step> steps = conversion(v.pieces[i].layout, goal);
    for (const Step& s : steps) sent += traffic(plan_.mesh, v.type.shape, s);
    sent += 1e-6 * static_cast<double>(steps.size());  // of equals, the nearer
    if (best == v.pieces.size() || sent < least) {
      best = i;
      least = sent;
    }
  }
  base::require(best < v.pieces.size(), "partition", "no piece of \"{}\" can become {}", v.name,
                to_string(plan_.mesh, goal));
  Piece piece = v.pieces[best];
  // The accumulators are reduced once a step, as soon as the last gradient is there, and may be worked on in place.
  const bool accumulator = is_state(v.op) && graph_->states()[v.op->state].kind == StateKind::gradient;
  const std::vector<Step> way = conversion(piece.layout, goal, plan_.units);
  if (accumulator && !way.empty() && !joined_.contains(v.op->state))
    emit_.enter("reduce", emit_.stages().chunk(v.op->layer));
  for (const Step& s : way) {
    const bool anew = s.move == Move::all_gather && !(plan_.keep && !is_state(v.op));
    const BufferId source = piece.buffer;
    const BufferId moved = accumulator ? reduce(source, s, asked(op)) : emit_.move(source, s, asked(op), false);
    // What the weight gradients need comes too late for the rest of the backward pass.
    piece = {moved, s.after, anew || emit_.work() == "weight" ? body : piece.body, stage, body};
    if (accumulator && emit_.program().overlap(source, piece.buffer) && s.move != Move::slice)
      std::erase_if(v.pieces, [&](const Piece& p) { return emit_.program().overlap(p.buffer, source); });
    v.pieces.push_back(piece);
  }
  if (accumulator) tell_reduced(v);
  emit_.select(body);
  return piece.buffer;
}

// Where the sum of an accumulator stands: its first piece that is not in parts.
void Partitioner::tell_reduced(const Value& v) {
  const BufferId stored = storage_.of(v.op->state);
  for (const Piece& p : v.pieces) {
    if (!p.layout.partial().empty()) continue;
    for (program::StateInfo& s : emit_.program().states)
      if (s.buffer == stored && s.reduced == kNoBuffer) s.reduced = p.buffer;
    return;
  }
}

BufferId Partitioner::make_free(Id id, const Layout& goal, const Op& op) {
  const Op& maker = *value(id).op;
  const bool input = maker.kind() == "input";
  const std::string body = input ? std::string() : emit_.selected();
  if (input)  // of one name there is one buffer for each layout
    for (const Value& v : values_)
      for (const Piece& p : v.pieces)
        if (emit_.program().buffer(p.buffer).input == maker.attributes.text("name") && p.layout == goal &&
            p.stage == emit_.stage())
          return p.buffer;
  for (const Piece& p : value(id).pieces)
    if (p.layout == goal && p.body == body && p.stage == emit_.stage()) return p.buffer;
  std::vector<BufferId> ins;
  for (Id in : maker.ins) {
    Layout l;
    for (const mesh::Split& s : goal.splits())
      if (value(in).type.shape.has(s.dim)) l.set(s.dim, s.factors);
    ins.push_back(need(in, l, op));
  }
  const BufferId b = emit_.block(value(id).name, value(id).type, goal);
  if (input) {
    emit_.program().buffer(b).input = maker.attributes.text("name");
  } else {
    Asked by = asked(op);
    emit_.compute(by, *maker.row, maker.attributes, ins, {b}, {}, 0, maker.absent);
    clear_padding(maker, b);
  }
  value(id).pieces.push_back({b, goal, body, emit_.stage(), emit_.selected()});
  return b;
}

}  // namespace kintsugi::lower
