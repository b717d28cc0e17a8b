#include "kintsugi/lower/partition/buckets.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <tuple>

#include "kintsugi/base/error.h"
#include "kintsugi/graph/copy.h"
#include "kintsugi/tensor/state_blocks.h"

namespace kintsugi::lower {

using graph::Graph;
using graph::kNone;
using graph::Op;
using graph::Role;
using graph::State;
using graph::StateId;
using graph::StateKind;
using graph::StateTable;
using graph::ValueId;
using tensor::Shape;

namespace {

std::vector<Factor> flat_of(const plan::Plan& plan, std::string_view family, const Bucket& b) {
  std::vector<Factor> taken = b.shard();
  const Splits splits = plan::by_rules(plan, family, {b.shape[1]}, taken);
  return factors_of(splits, kFlat);
}

Layout weight_layout(const plan::Plan& plan, const State& weight) {
  std::vector<Factor> taken;
  Layout layout;
  for (auto& [dim, factors] : plan::by_rules(plan, "weight", weight.type.shape.dims(), taken)) layout.set(dim, factors);
  return layout;
}

// The product of all factors that rules assign to flat; its length must be a multiple of it.
int64_t flat_parts(const plan::Plan& plan) {
  std::vector<Factor> factors;
  for (const plan::Rule& r : plan.rules)
    if (r.dim == kFlat)
      for (Factor f : plan.mesh.expand(r.axes))
        if (std::find(factors.begin(), factors.end(), f) == factors.end()) factors.push_back(f);
  return plan.mesh.count(factors);
}

// Whether the layout of a weight cuts blocks of which its optimizer states have scales.
bool cuts_blocks(const mesh::Mesh& mesh, const Shape& weight, const Shape& scales, const Layout& layout) {
  return std::ranges::any_of(layout.splits(), [&](const mesh::Split& split) {
    const auto at = std::ranges::find(scales.dims(), split.dim, &tensor::Dim::name);
    if (at == scales.dims().end()) return true;
    const int64_t parts = mesh.count(split.factors);
    const bool last = at + 1 == scales.dims().end();
    return last && (at->size % parts != 0 || weight.size(split.dim) % parts != 0);
  });
}

// [weight]: whether its update needs whole dims, since its layout cuts blocks.
std::set<StateId> with_cut_blocks(const StateTable& states, const plan::Plan& plan) {
  std::set<StateId> weights;
  for (size_t i = 0; i < states.size(); ++i) {
    const auto id = static_cast<StateId>(i);
    if (!in_state_blocks(states, id)) continue;
    const State& weight = states[states[id].weight];
    if (cuts_blocks(plan.mesh, weight.type.shape, states[id].type.shape, weight_layout(plan, weight)))
      weights.insert(states[id].weight);
  }
  return weights;
}

// The names of its weights.
std::string weights_of(const Buckets& buckets, int bucket) {
  std::vector<std::string> names;
  for (const Member& m : buckets.list[static_cast<size_t>(bucket)].members)
    names.push_back(buckets.states[m.weight].name);
  return fmt::format("{}", fmt::join(names, " "));
}

}  // namespace

bool in_state_blocks(const StateTable& states, StateId state) {
  const State& s = states[state];
  return s.kind == StateKind::optimizer && s.weight != kNone && s.type.shape != states[s.weight].type.shape;
}

std::vector<Factor> Bucket::shard() const {
  std::vector<Factor> factors;
  for (const mesh::Split& s : layout.splits()) factors.insert(factors.end(), s.factors.begin(), s.factors.end());
  return factors;
}

Layout Bucket::flat_layout(std::vector<Factor> flat) const {
  Layout l;
  l.set(kShard, shard());
  l.set(kFlat, std::move(flat));
  return l;
}

Buckets make_buckets(const StateTable& states, const Uses& uses, const plan::Plan& plan) {
  Buckets b;
  b.states = states;
  struct Key {
    int layer;
    tensor::DType dtype;
    bool decay;
    bool frozen;
    double rate;
    Layout layout;
    std::optional<Layout> arrival;
    bool alone;  // used in several layers, or needed whole by its update
    bool operator==(const Key&) const = default;
  };
  std::vector<Key> keys;
  std::map<int, std::vector<size_t>> of_layer;  // [layer]: buckets, except those of shared weights
  const std::set<StateId> cut = with_cut_blocks(states, plan);
  const int64_t parts = flat_parts(plan);
  for (size_t i = 0; i < states.size(); ++i) {
    const auto id = static_cast<StateId>(i);
    const State& s = states[id];
    if (s.kind != StateKind::weight) continue;
    const auto arrival = uses.arrivals.find(id);
    const bool shared = uses.shared(id), alone = shared || s.alone || cut.contains(id);
    const Key key = {s.layer,
                     s.type.dtype,
                     s.decay,
                     s.frozen,
                     s.rate,
                     weight_layout(plan, s),
                     arrival == uses.arrivals.end() ? std::nullopt : std::optional(arrival->second),
                     alone};
    const std::vector<size_t>& near = of_layer[s.layer];
    const auto same = std::find_if(near.begin(), near.end(), [&](size_t k) { return !alone && keys[k] == key; });
    const size_t at = same == near.end() ? keys.size() : *same;
    if (at == keys.size()) {
      if (!alone) of_layer[s.layer].push_back(at);
      keys.push_back(key);
      b.list.push_back({.name = s.name,
                        .layer = s.layer,
                        .layout = key.layout,
                        .gradient = {},
                        .arriving = {},
                        .members = {},
                        .shape = {}});
    }
    Bucket& bucket = b.list[at];
    if (shared) bucket.uses.assign(uses.layers.at(id).begin(), uses.layers.at(id).end());
    const int64_t first =
        bucket.members.empty()
            ? 0
            : (bucket.members.back().first + bucket.members.back().elements + kBlock - 1) / kBlock * kBlock;
    bucket.members.push_back({id, first, mesh::local_shape(plan.mesh, s.type.shape, bucket.layout).elements()});
    b.places[id] = {static_cast<int>(at), bucket.members.size() - 1, kNone};
  }
  for (size_t i = 0; i < b.list.size(); ++i) {
    Bucket& bucket = b.list[i];
    if (bucket.members.size() > 1) bucket.name += fmt::format("+{}", bucket.members.size() - 1);
    const int64_t unit = kBlock * parts, length = bucket.members.back().first + bucket.members.back().elements;
    bucket.shape = Shape{{std::string(kShard), plan.mesh.count(bucket.shard())},
                         {std::string(kFlat), (length + unit - 1) / unit * unit}};
    bucket.arriving = bucket.flat_layout({});
    bucket.gradient = bucket.flat_layout(flat_of(plan, "gradient", bucket));
    if (keys[i].arrival)
      for (const mesh::Part& p : keys[i].arrival->partial()) {
        bucket.arriving.set_part(p.factor, p.combiner);
        if (!bucket.gradient.is_split(p.factor) && !plan.units) bucket.gradient.set_part(p.factor, p.combiner);
      }
  }
  std::map<std::tuple<int, StateKind, std::string>, StateId> made;  // by bucket and name suffix after the weight's
  for (size_t i = 0; i < states.size(); ++i) {
    const auto id = static_cast<StateId>(i);
    const State& s = states[id];
    const StateId weight = s.kind == StateKind::weight ? id : s.weight;
    const bool in_blocks = in_state_blocks(states, id);
    if (weight == kNone || (in_blocks && cut.contains(weight))) continue;
    Place place = b.places.at(weight);
    const Bucket& bucket = b.list[static_cast<size_t>(place.bucket)];
    const std::string suffix = s.name.substr(states[weight].name.size());
    StateId& whole = made.try_emplace({place.bucket, s.kind, suffix}, kNone).first->second;
    const tensor::Dim &shards = bucket.shape[0], &flat = bucket.shape[1];
    if (whole == kNone)
      whole = b.states.add(
          {.name = "bucket " + bucket.name + suffix,
           .type = {{shards, {flat.name, in_blocks ? flat.size / tensor::kStateBlock : flat.size}}, s.type.dtype},
           .kind = s.kind,
           .layer = s.layer,
           .decay = s.decay,
           .saved = s.saved});
    place.state = whole;
    b.places[id] = place;
    b.parts[whole].push_back(id);
  }
  return b;
}

Graph update_of_buckets(const Graph& update, const Buckets& buckets) {
  Graph g("update", update.table(), buckets.states);
  g.phase = graph::Phase::update;
  std::vector<ValueId> now(update.values().size(), kNone);  // [value of the old graph]: its new value
  std::vector<int> bucket_of(update.values().size(), -1);   // [value]: the bucket it belongs to
  std::map<std::pair<int, StateId>, ValueId> reads;
  std::map<std::pair<int, StateId>, bool> assigned;
  // The copy of an operation for a bucket's first member, by its index among the operations of that member.
  struct Made {
    std::string kind;
    std::vector<ValueId> ins, outs;
    tensor::Attributes attributes;
  };
  std::map<int, std::vector<Made>> made;
  // Values in the dims of a bucket's only weight: operands and results of operations that are not elementwise.
  std::vector<int> weight_of(update.values().size(), -1);  // [value]: the bucket whose weight has its dims
  std::map<std::pair<ValueId, int>, ValueId> converted;    // [new value, bucket]
  std::set<ValueId> in_cut_blocks;                         // scales of blocks that are not in a bucket
  const auto convert = [&](std::string_view kind, ValueId v, int bucket) {
    ValueId& to = converted.try_emplace({v, bucket}, kNone).first->second;
    const Bucket& b = buckets.list[static_cast<size_t>(bucket)];
    const bool apart = kind == "from_bucket";
    base::require(b.members.size() == 1, "buckets", "{} of {} weights", kind, b.members.size());
    const Shape& shape = apart ? buckets.states[b.members[0].weight].type.shape : b.shape;
    if (to == kNone)
      to = g.make(kind, {v}, {{shape, g.type(v).dtype}}, {{"bucket", int64_t{bucket}}}, g.value(v).name)[0];
    return to;
  };
  for (const Op& op : update.ops()) {
    g.layer = op.layer;
    const auto place = op.state == kNone ? buckets.places.end() : buckets.places.find(op.state);
    if (op.role() == Role::read_state && place != buckets.places.end()) {
      const auto key = std::pair(place->second.bucket, place->second.state);
      if (!reads.contains(key)) {
        const StateId bucket = place->second.state;
        if (buckets.states[bucket].kind == StateKind::gradient) {
          // A weight that several stages use has an accumulator on each.
          for (int layer : buckets.list[static_cast<size_t>(key.first)].uses) {
            if (layer == op.layer) continue;
            g.layer = layer;
            const ValueId other = g.read(bucket);
            g.layer = op.layer;
            g.accumulate(other, bucket);
          }
        }
        reads[key] = g.read(bucket);
      }
      now[static_cast<size_t>(op.outs[0])] = reads[key];
      bucket_of[static_cast<size_t>(op.outs[0])] = key.first;
      continue;
    }
    std::vector<ValueId> ins;
    std::set<int> of;  // buckets of its operands
    for (ValueId v : op.ins) {
      ins.push_back(now[static_cast<size_t>(v)]);
      if (bucket_of[static_cast<size_t>(v)] >= 0) of.insert(bucket_of[static_cast<size_t>(v)]);
      if (op.row->flat && weight_of[static_cast<size_t>(v)] >= 0) of.insert(weight_of[static_cast<size_t>(v)]);
    }
    if (place != buckets.places.end()) {  // assign
      if (const int of_weight = weight_of[static_cast<size_t>(op.ins[0])]; of_weight >= 0)
        ins[0] = convert("to_bucket", ins[0], of_weight);
      bool& done = assigned[{place->second.bucket, place->second.state}];
      if (!done) g.assign(ins[0], place->second.state);
      done = true;
      continue;
    }
    const bool cuts = std::ranges::any_of(op.ins, [&](ValueId v) { return in_cut_blocks.contains(v); });
    if (op.row->flat && of.size() == 1 && !cuts) {
      const int bucket = *of.begin();
      std::vector<Made>& list = made[bucket];
      for (size_t i = 0; i < ins.size(); ++i)
        if (weight_of[static_cast<size_t>(op.ins[i])] >= 0) ins[i] = convert("to_bucket", ins[i], bucket);
      ins = op.by_position(ins);
      auto same = std::find_if(list.begin(), list.end(), [&](const Made& m) {
        return m.kind == op.kind() && m.ins == ins && m.attributes == op.attributes;
      });
      if (same == list.end()) {
        const std::string name = op.outs.empty() ? "" : update.value(op.outs[0]).name;
        tensor::Attributes attributes = op.attributes;
        if (op.row->by_position) attributes.set("states", weights_of(buckets, bucket));
        list.push_back({std::string(op.kind()), ins, g.apply(op.kind(), ins, attributes, name), op.attributes});
        same = list.end() - 1;
      }
      for (size_t j = 0; j < op.outs.size(); ++j) {
        now[static_cast<size_t>(op.outs[j])] = same->outs[j];
        bucket_of[static_cast<size_t>(op.outs[j])] = bucket;
      }
      continue;
    }
    int whole = -1;  // the bucket of which the operation takes the weight
    for (size_t i = 0; i < ins.size(); ++i) {
      const int from = bucket_of[static_cast<size_t>(op.ins[i])], same = weight_of[static_cast<size_t>(op.ins[i])];
      if (from >= 0 && g.shape(ins[i]).has(kFlat)) {
        ins[i] = convert("from_bucket", ins[i], from);
        whole = from;
      } else if (same >= 0) {
        whole = same;
      }
    }
    // An operation over all buckets, such as the norm, takes each bucket once.
    std::vector<ValueId> once;
    std::set<ValueId> taken;
    for (size_t i = 0; i < ins.size(); ++i) {
      const bool in_bucket = whole < 0 && bucket_of[static_cast<size_t>(op.ins[i])] >= 0;
      if (!in_bucket || taken.insert(ins[i]).second) once.push_back(ins[i]);
    }
    ins = std::move(once);
    std::vector<ValueId> outs;
    if (op.role() == Role::read_state) {
      outs = {g.read(op.state)};
      if (in_state_blocks(buckets.states, op.state)) in_cut_blocks.insert(op.outs[0]);
    } else if (op.role() == Role::assign) {
      g.assign(ins[0], op.state);
    } else if (op.row->infer) {
      tensor::Attributes attributes = op.attributes;
      if (cuts) {
        const Bucket& b = buckets.list[static_cast<size_t>(whole)];
        attributes.set("whole", tensor::names(buckets.states[b.members[0].weight].type.shape));
      }
      outs = g.apply(op.kind(), op.by_position(ins), attributes);
    } else {
      outs = g.make(op.kind(), op.by_position(ins), graph::out_types(update, op), op.attributes);
    }
    for (size_t j = 0; j < op.outs.size(); ++j) {
      const auto out = static_cast<size_t>(op.outs[j]);
      now[out] = outs[j];
      if (whole < 0) continue;
      const Bucket& b = buckets.list[static_cast<size_t>(whole)];
      if (g.shape(outs[j]) == buckets.states[b.members[0].weight].type.shape) weight_of[out] = whole;
    }
  }
  return g;
}

}  // namespace kintsugi::lower
