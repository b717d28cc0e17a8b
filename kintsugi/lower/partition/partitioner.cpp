#include "kintsugi/lower/partition/partitioner.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::Op;
using graph::Role;
using program::kNoBuffer;
using program::Work;

void Partitioner::run(const Graph& g, std::optional<Work> work) {
  graph_ = &g;
  work_ = work;
  values_.clear();
  gathered_.clear();
  staged_.clear();
  split_backward_ =
      std::any_of(g.ops().begin(), g.ops().end(), [](const Op& op) { return op.phase == graph::Phase::weight; });
  for (const graph::Value& v : g.values())
    values_.push_back({v.name, v.type, v.op < 0 ? nullptr : &g.op_at(static_cast<size_t>(v.op)), {}});
  gradients_.clear();
  for (const Op& op : g.ops())
    if (op.role() == Role::accumulate)
      if (const Place* place = storage_.place(op.state)) ++gradients_[{place->state, emit_.stages().stage(op.layer)}];
  for (const Op& op : g.ops()) {
    if (op.role() == Role::read_state || op.row->free) continue;
    if (op.row->chained) {
      for (const Op& part : in_order_of_stages(op, body_of(op))) take(part);
    } else if (op.row->variadic) {
      for (const Op& part : in_groups(op, body_of(op))) take(part);
    } else {
      take(op);
    }
  }
  for (program::StateInfo& s : emit_.program().states)
    if (const auto reduced = reduced_.find(s.buffer); reduced != reduced_.end()) s.reduced = reduced->second;
}

int Partitioner::layer_of(Id v) const {
  const Op* op = value(v).op;
  return op ? op->layer : 0;
}

Work Partitioner::work_of(const Op& op) const {
  if (work_) return *work_;
  switch (op.phase) {
    case graph::Phase::forward:
      return Work::forward;
    case graph::Phase::backward:
      return Work::backward;
    case graph::Phase::weight:
      return Work::weight;
    case graph::Phase::update:
      return Work::update;
  }
  throw base::InternalError("partition", "{} has no phase", op.kind());
}

BodyId Partitioner::body_of(const Op& op) {
  const Work work = work_of(op);
  const Stages& s = emit_.stages();
  return emit_.body_for(work, work == Work::update ? s.stage(op.layer) : s.chunk(op.layer));
}

Site Partitioner::site(const Op& op, BodyId body) const {
  return {.body = body, .by = op.kind(), .phase = op.phase, .layer = op.layer};
}

void Partitioner::take(const Op& op) {
  const BodyId body = body_of(op);
  switch (op.role()) {
    case Role::compute:
      return compute(op, body);
    case Role::accumulate:
      return accumulate(op, body);
    case Role::assign:
      return assign(op, body);
    case Role::output: {
      const BufferId b = need(op.ins[0], {}, op, body);
      emit_.program().buffer(b).output = op.attributes.text("name");
      return;
    }
    case Role::read_state:
    case Role::input:
      break;  // materialized where requested
  }
  throw base::InternalError("partition", "{} is not computed", op.kind());
}

// A weight's dims in a bucket of its own: as the bucket, if flat is whole, and so are the gaps after the weight zero.
void Partitioner::convert_bucket(const Op& op, BodyId body) {
  const auto index = static_cast<int>(op.attributes.integer("bucket"));
  const Bucket& bucket = storage_.bucket(index);
  const Value& from = value(op.ins[0]);
  Value& to = value(op.outs[0]);
  const Layout whole = bucket.flat_layout({});
  if (from.type.shape.has(kFlat)) {
    const BufferId b = need(op.ins[0], whole, op, body);
    const int64_t shift = bucket.members[0].first * tensor::size_of(to.type.dtype);
    to.pieces = {
        {emit_.view(b, to.name, to.type, bucket.layout, shift), bucket.layout, kNoBody, emit_.stage(body), body}};
    return;
  }
  const BufferId b = need(op.ins[0], bucket.layout, op, body);
  const BufferId made = storage_.block_of(index, to.type.dtype, whole, ".u");
  if (const std::vector<BufferId> gaps = storage_.gaps(made, index); !gaps.empty())
    emit_.compute(site(op, body), emit_.row("fill"), {{"value", 0.0}}, {}, gaps);
  const int64_t shift = bucket.members[0].first * tensor::size_of(to.type.dtype);
  emit_.replace(site(op, body), b, emit_.view(made, from.name, from.type, bucket.layout, shift));
  to.pieces = {{made, whole, kNoBody, emit_.stage(body), body}};
}

void Partitioner::compute(const Op& op, BodyId body) {
  if (op.row->bucket) return convert_bucket(op, body);
  Operation o = {.row = *op.row, .attributes = op.attributes, .ins = {}, .outs = {}, .absent = op.absent};
  std::vector<std::optional<Layout>> have;
  o.ins.reserve(op.ins.size());
  o.outs.reserve(op.outs.size());
  have.reserve(op.ins.size());
  for (Id v : op.ins) {
    show_stored(v, body);
    o.ins.push_back(value(v).type.shape);
    have.push_back(layout_of(v));
  }
  for (Id v : op.outs) o.outs.push_back(value(v).type.shape);
  const Choice& c = choices_.of(o, have);
  for (const auto& [dim, factors] : c.splits) used_.insert(factors.begin(), factors.end());
  if (!c.steps.empty()) return compute_in_steps(op, c, body);

  std::vector<BufferId> ins, outs;
  ins.reserve(op.ins.size());
  outs.reserve(op.outs.size());
  for (size_t i = 0; i < op.ins.size(); ++i) ins.push_back(need(op.ins[i], c.ins[i], op, body));
  const bool shares = op.row->view || op.row->must_share;
  for (size_t i = 0; i < op.outs.size(); ++i) {
    const Value& v = value(op.outs[i]);
    outs.push_back(shares ? emit_.view(ins[0], v.name, v.type, c.outs[i], 0) : emit_.block(v.name, v.type, c.outs[i]));
  }
  if (!op.row->view) {
    emit_.compute(site(op, body), *op.row, local_attributes(op, c.splits), ins, outs, op.absent);
    for (BufferId b : outs) clear_padding(op, b, body);
  }
  for (size_t i = 0; i < op.outs.size(); ++i)
    value(op.outs[i]).pieces = {{outs[i], c.outs[i], kNoBody, emit_.stage(body), body}};
}

namespace {

bool has_window(const tensor::Attributes& attributes, std::string_view dim) {
  return std::ranges::any_of(tensor::windows_of(attributes), [&](const auto& w) { return w.dim == dim; });
}

}  // namespace

// A block that is split along a windowed dim includes the padding, so that its windows have none.
tensor::Attributes Partitioner::local_attributes(const Op& op, const Splits& splits) const {
  if (op.row->windowed.empty()) return op.attributes;
  std::vector<tensor::DimWindow> windows = tensor::windows_of(op.attributes);
  for (auto& [dim, window] : windows)
    if (splits.contains(dim)) window.low = window.high = 0;
  tensor::Attributes local = op.attributes;
  set_windows(local, windows);
  return local;
}

// Padding is zeroed in every value, by selection: a kernel may have left anything there.
void Partitioner::clear_padding(const Op& op, BufferId b, BodyId body) {
  const program::Buffer& made = buffer(b);
  bool padded = false;
  for (const tensor::Dim& d : made.whole) {
    const mesh::Halo* halo = made.layout.halo(d.name);
    if (halo ? halo->adds : !mesh::is_padded(plan_.mesh, d.name, d.size, made.layout.of(d.name))) continue;
    const bool lacks =
        std::any_of(op.ins.begin(), op.ins.end(), [&](Id v) { return !value(v).type.shape.has(d.name); });
    // An output position that is padding may reach real inputs.
    const bool windowed = !op.row->windowed.empty() && has_window(op.attributes, d.name);
    padded |= !op.row->keeps_zero || windowed || (op.row->variadic && lacks);
  }
  if (padded) emit_.compute(site(op, body), emit_.row("mask"), {}, {b}, {b});
}

// In turn t every rank works on the pieces of the rank t places further along the ring; see Liu, Zaharia, Abbeel 2023,
// section 3.
void Partitioner::compute_in_steps(const Op& op, const Choice& c, BodyId body) {
  const std::vector<Factor>& ring = c.steps.begin()->second;
  const Site here = site(op, body);
  const auto travels = [&](Id v) {
    return std::any_of(c.steps.begin(), c.steps.end(), [&](const auto& s) { return value(v).type.shape.has(s.first); });
  };
  const auto output_block = [&](size_t i) {
    return emit_.block(value(op.outs[i]).name, value(op.outs[i]).type, c.outs[i]);
  };
  const int64_t turns = plan_.mesh.count(ring);
  std::vector<BufferId> ins, total(op.outs.size(), kNoBuffer);
  for (size_t i = 0; i < op.ins.size(); ++i) ins.push_back(need(op.ins[i], c.ins[i], op, body));
  for (int64_t turn = 0; turn < turns; ++turn) {
    std::vector<BufferId> next = ins, outs;
    if (turn + 1 < turns)
      for (size_t i = 0; i < ins.size(); ++i)
        if (travels(op.ins[i])) next[i] = emit_.shift(ins[i], ring, here);
    for (size_t i = 0; i < op.outs.size(); ++i) {
      const BufferId b = output_block(i);
      if (travels(op.outs[i])) {
        emit_.program().buffer(b).ring = ring;
        emit_.program().buffer(b).turn = turn;
      }
      outs.push_back(b);
    }
    emit_.compute(here, *op.row, op.attributes, ins, outs, op.absent);
    for (BufferId b : outs) clear_padding(op, b, body);
    if (turn == 0) {
      total = outs;
    } else if (!op.row->join.empty()) {
      std::vector<BufferId> both = total, joined;
      both.insert(both.end(), outs.begin(), outs.end());
      for (size_t i = 0; i < op.outs.size(); ++i) joined.push_back(output_block(i));
      emit_.compute(here, emit_.row(op.row->join), {}, both, joined);
      total = joined;
    } else {
      for (size_t i = 0; i < op.outs.size(); ++i) {
        const BufferId sum = output_block(i);
        emit_.program().buffer(sum).ring = buffer(outs[i]).ring;
        emit_.program().buffer(sum).turn = turn;
        emit_.compute(here, emit_.row("add"), {}, {total[i], outs[i]}, {sum});
        total[i] = sum;
      }
    }
    // Results computed from a piece travel with it, and are back on its own rank after the last turn.
    for (size_t i = 0; i < op.outs.size(); ++i)
      if (travels(op.outs[i])) total[i] = emit_.shift(total[i], ring, here);
    ins = next;
  }
  for (size_t i = 0; i < op.outs.size(); ++i) {
    emit_.program().buffer(total[i]).ring.clear();
    emit_.program().buffer(total[i]).turn = 0;
    value(op.outs[i]).pieces = {{total[i], c.outs[i], kNoBody, emit_.stage(body), body}};
  }
}

}  // namespace kintsugi::lower
