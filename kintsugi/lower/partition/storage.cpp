#include "kintsugi/lower/partition/storage.h"

#include <fmt/format.h>

#include "kintsugi/base/error.h"
#include "kintsugi/tensor/state_blocks.h"

namespace kintsugi::lower {

using graph::State;
using graph::StateId;
using graph::StateKind;

const Place* Storage::place(StateId id) const {
  const auto i = buckets_.places.find(id);
  return i == buckets_.places.end() ? nullptr : &i->second;
}

Layout Storage::stored(StateId id) const {
  const State& s = buckets_.states[id];
  // The layout of a bucket follows from its kind; see make_buckets().
  if (const auto parts = buckets_.parts.find(id); parts != buckets_.parts.end()) {
    const Bucket& b = bucket(place(parts->second.front())->bucket);
    if (s.kind == StateKind::gradient) return b.gradient;
    std::vector<Factor> taken = b.shard();
    const Splits splits = plan::by_rules(plan_, name_of(s.kind), {b.shape[1]}, taken);
    return b.flat_layout(factors_of(splits, kFlat));
  }
  std::vector<Factor> taken;
  Layout layout;
  for (auto& [dim, factors] : plan::by_rules(plan_, name_of(s.kind), s.type.shape.dims(), taken))
    layout.set(dim, factors);
  return layout;
}

BufferId Storage::of(StateId id, int stage, const Layout* layout) {
  const auto key = std::pair(id, stage);
  if (const auto i = made_.find(key); i != made_.end()) return i->second;
  const State& s = buckets_.states[id];
  const BufferId b = emit_.block(s.name, s.type, layout ? *layout : stored(id));
  emit_.program().buffer(b).region = program::Region::state;
  made_[key] = b;
  if (const auto parts = buckets_.parts.find(id); parts != buckets_.parts.end()) {
    for (StateId part : parts->second) add_info(part, b, place(part), stage);
  } else {
    add_info(id, b, nullptr, stage);
  }
  return b;
}

bool Storage::is_number(StateId id) const {
  const State& s = buckets_.states[id];
  const bool tracked = s.saved && s.type.shape.rank() > 0;  // per layer, only on its stage
  return s.kind == StateKind::statistic && !s.parts && !tracked;
}

std::vector<int> Storage::stages_of(StateId id) const {
  std::vector<int> list = {emit_.stages().stage(buckets_.states[id].layer)};
  for (int s = 0; s < emit_.stages().stages; ++s)
    if (s != list[0] && (is_number(id) || made_.contains({id, s}))) list.push_back(s);
  return list;
}

void Storage::add_info(StateId id, BufferId buffer, const Place* place, int stage) {
  const State& s = buckets_.states[id];
  program::StateInfo info = {.name = s.name,
                             .buffer = buffer,
                             .kind = s.kind,
                             .weight = s.weight == graph::kNone ? std::string() : buckets_.states[s.weight].name,
                             .part = s.part,
                             .whole = s.type,
                             .layout = emit_.program().buffer(buffer).layout,
                             .layer = s.layer,
                             .replica = stage != emit_.stages().stage(s.layer),
                             .init = s.init,
                             .saved = s.saved};
  if (place) {
    const Bucket& b = bucket(place->bucket);
    info.layout = b.layout;
    info.in_bucket = true;
    info.first = b.members[place->member].first / (in_state_blocks(buckets_.states, id) ? tensor::kStateBlock : 1);
  }
  emit_.program().states.push_back(std::move(info));
}

BufferId Storage::member(BufferId buffer, StateId id) {
  const Place& at = buckets_.places.at(id);
  const Bucket& b = bucket(at.bucket);
  const State& s = buckets_.states[id];
  const tensor::DType dtype = emit_.program().buffer(buffer).type.dtype;
  return emit_.view(buffer, s.name, {s.type.shape, dtype}, b.layout,
                    b.members[at.member].first * tensor::size_of(dtype));
}

BufferId Storage::block_of(int i, tensor::DType dtype, const Layout& layout, const std::string& suffix) {
  return emit_.block("bucket " + bucket(i).name + suffix, {bucket(i).shape, dtype}, layout);
}

std::vector<BufferId> Storage::levels(BufferId state, int64_t count) {
  std::vector<BufferId>& list = levels_[state];
  while (static_cast<int64_t>(list.size()) < count) {
    program::Buffer b = emit_.program().buffer(state);
    b.name += fmt::format(".level{}", list.size());
    const tensor::Type whole = {b.whole, b.type.dtype};
    list.push_back(emit_.add(b));
    emit_.program().states.push_back({.name = b.name,
                                      .buffer = list.back(),
                                      .kind = graph::StateKind::level,
                                      .whole = whole,
                                      .layout = b.layout,
                                      .saved = false});
  }
  return list;
}

std::vector<BufferId> Storage::gaps(BufferId buffer, int i) {
  const Bucket& b = bucket(i);
  const tensor::DType dtype = emit_.program().buffer(buffer).type.dtype;
  std::vector<BufferId> list;
  for (size_t m = 0; m < b.members.size(); ++m) {
    const int64_t end = b.members[m].first + b.members[m].elements,
                  next = m + 1 < b.members.size() ? b.members[m + 1].first : b.shape.size(kFlat);
    if (next > end)
      list.push_back(
          emit_.view(buffer, "gap", {tensor::Shape{{"gap", next - end}}, dtype}, {}, end * tensor::size_of(dtype)));
  }
  return list;
}

}  // namespace kintsugi::lower
