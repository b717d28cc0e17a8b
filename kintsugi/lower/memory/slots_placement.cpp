#include "kintsugi/lower/memory/slots_placement.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "kintsugi/lower/memory/first_fit.h"

namespace kintsugi::lower {

namespace {

using Order = std::vector<size_t>;

// In calls.
LiveRange live_range(const Instance& i) {
  return {i.calls.begin, i.calls.end};
}

Order sorted(size_t size, const auto& less) {
  Order order(size);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), less);
  return order;
}

// Adds the temporaries, in each call as low as the instances of that call allow.
void add_temporaries(const ArenaDemand& demand, Placement& placement) {
  std::vector<Block<LiveRange>> taken;
  for (size_t i : sorted(placement.instances.size(),
                         [&](size_t a, size_t b) { return placement.instances[a] < placement.instances[b]; }))
    taken.push_back({placement.instances[i], demand.instances[i].bytes, live_range(demand.instances[i])});
  for (const Temporaries& t : demand.temporaries) {
    std::vector<int64_t>& offsets = placement.temporaries.emplace_back();
    for (int call : t.calls) {
      offsets.push_back(lowest_offset(taken, {call, call}, t.bytes));
      placement.bytes = std::max(placement.bytes, offsets.back() + t.bytes);
    }
  }
}

std::vector<Item> items_of(const ArenaDemand& demand) {
  std::vector<Item> items;
  for (const Instance& i : demand.instances) items.push_back({i.bytes, {i.ticks}});
  return items;
}

// The ticks of calls, merging adjacent calls into one interval.
std::vector<Interval> ticks_of(const std::vector<int>& calls, int ticks) {
  std::vector<Interval> list;
  for (int c : calls) {
    const Interval now = {c * ticks, c * ticks + ticks - 1};
    if (!list.empty() && list.back().end + 1 == now.begin) {
      list.back().end = now.end;
    } else {
      list.push_back(now);
    }
  }
  return list;
}

}  // namespace

std::string_view name_of(PlacementMethod method) {
  switch (method) {
    case PlacementMethod::stacked:
      return "stacked";
    case PlacementMethod::packed:
      return "packed";
    case PlacementMethod::beside:
      return "beside";
  }
  return "";
}

Placement place_stacked(const ArenaDemand& demand) {
  const std::vector<Instance>& all = demand.instances;
  const Order order = sorted(all.size(), [&](size_t a, size_t b) {
    return std::pair(-all[a].bytes, all[a].ticks.begin) < std::pair(-all[b].bytes, all[b].ticks.begin);
  });
  Placement placement = {PlacementMethod::stacked, std::vector<int64_t>(all.size()), {}};
  std::vector<Block<LiveRange>> placed;
  for (size_t i : order) {
    const LiveRange live = {all[i].ticks.begin, all[i].ticks.end};
    placement.instances[i] = lowest_offset(placed, live, all[i].bytes);
    placement.bytes = std::max(placement.bytes, placement.instances[i] + all[i].bytes);
    insert_block(placed, {placement.instances[i], all[i].bytes, live});
  }
  add_temporaries(demand, placement);
  return placement;
}

Placement place_packed(const ArenaDemand& demand) {
  std::vector<Item> items = items_of(demand);
  for (const Temporaries& t : demand.temporaries) items.push_back({t.bytes, ticks_of(t.calls, demand.ticks)});
  Packing packing = pack(items);
  Placement placement = {PlacementMethod::packed, {}, {}, packing.bytes};
  for (size_t t = 0; t < demand.temporaries.size(); ++t)
    placement.temporaries.emplace_back(demand.temporaries[t].calls.size(),
                                       packing.offsets[demand.instances.size() + t]);
  packing.offsets.resize(demand.instances.size());
  placement.instances = std::move(packing.offsets);
  return placement;
}

Placement place_beside(const ArenaDemand& demand) {
  Packing packing = pack(items_of(demand));
  Placement placement = {PlacementMethod::beside, std::move(packing.offsets), {}, packing.bytes};
  add_temporaries(demand, placement);
  return placement;
}

Placement place(const ArenaDemand& demand) {
  Placement best = place_stacked(demand);
  if (demand.instances.size() > kFewInstances || best.bytes <= demand.enough) return best;
  for (const auto method : {place_packed, place_beside})
    if (Placement other = method(demand); other.bytes < best.bytes) best = std::move(other);
  return best;
}

}  // namespace kintsugi::lower
