#include "kintsugi/simulate/transfer_costs.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

#include "kintsugi/base/error.h"

namespace kintsugi::simulate {

using program::Collective;

namespace {

// The fraction of a ring's bandwidth that a tree reaches (NCCL, src/graph/tuning.cc, trees over several nodes).
constexpr double kTree = 0.92;

// Fractions of the bandwidth that NCCL's low-latency protocols reach, since they send flags with the data, and the
// maximum bytes/s of LL between nodes (tuning.cc, llMaxBws, more than two nodes).
constexpr double kLl128 = 0.92, kLl = 0.5, kMostLl = 20.4e9;

// Number of times that the data travel around the ring.
double rounds(Collective kind) {
  switch (kind) {
    case Collective::all_reduce:
      return 2;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return 1;
    case Collective::shift:
    case Collective::halo:
    case Collective::send:
    case Collective::receive:
      return 0;
  }
  throw base::InternalError("simulate", "no collective {}", static_cast<int>(kind));
}

double tapered(const Cluster& c, const GroupShape& g) {
  return c.network.link.attained() * (g.leaves_part ? c.network.taper : 1);
}

// One step to the neighbor.
TransferTime message(const Cluster& c, const GroupShape& g, double bytes) {
  if (g.nodes == 1) return {LinkKind::node, c.node.start + c.node.step, bytes / c.node.attained()};
  return {LinkKind::network, c.network.link.start + c.network.link.step, bytes / tapered(c, g)};
}

// A ring over several nodes takes `turns` x (nodes - 1) steps between nodes and `turns` x (ranks - nodes) within them.
// The library selects the fastest protocol: Simple has the full bandwidth, LL128 and LL have shorter steps (NCCL,
// src/graph/tuning.cc, NCCL_ALGO_RING).
TransferTime fastest_ring(const Cluster& c, const GroupShape& g, double turns, double bytes, double bandwidth) {
  const Link &node = c.node, &network = c.network.link;
  const double between = turns * static_cast<double>(g.nodes - 1),
               within = turns * static_cast<double>(g.ranks - g.nodes);
  const auto ring = [&](double network_step, double node_step, double rate) {
    return TransferTime{LinkKind::network, network.start + between * network_step + within * node_step, bytes / rate};
  };
  TransferTime best = ring(network.step, node.step, bandwidth);
  const auto try_protocol = [&](double network_step, double node_step, double rate) {
    if (network_step == 0 || (within > 0 && node_step == 0)) return;
    if (const TransferTime t = ring(network_step, node_step, rate); t.total() < best.total()) best = t;
  };
  try_protocol(network.ll128_step, node.ll128_step, kLl128 * bandwidth);
  try_protocol(network.ll_step, node.ll_step, std::min(kLl * bandwidth, kMostLl));
  return best;
}

// A ring enters and leaves a node by one adapter if the group has two devices there that share it, or a single device.
bool changes_adapter(const Cluster& c, const std::vector<int>& ranks) {
  const auto per_node = static_cast<int>(c.devices_per_node);
  const auto per_adapter = c.network.adapters == 0 ? 1 : std::max(1, per_node / static_cast<int>(c.network.adapters));
  std::map<int, int> devices;  // of the first rank's node, by adapter
  for (const int rank : ranks)
    if (rank / per_node == ranks[0] / per_node) ++devices[rank / per_adapter];
  return devices.size() > 1 && std::ranges::all_of(devices, [](const auto& d) { return d.second == 1; });
}

// As measured within a node. The time of the fewest bytes is latency.
std::optional<TransferTime> measured_time(const Measured& measured, const GroupShape& g, Collective kind,
                                          double bytes) {
  const Collective row = kind == Collective::receive ? Collective::send
                         : kind == Collective::halo  ? Collective::shift  // also to neighbors
                                                     : kind;
  const int ranks = row == Collective::send ? 2 : static_cast<int>(g.ranks);
  const auto seconds = measured.transfer_seconds(row, ranks, bytes);
  if (!seconds) return std::nullopt;
  const double least = std::min(*seconds, *measured.transfer_seconds(row, ranks, 0));
  return TransferTime{LinkKind::node, least, *seconds - least};
}

}  // namespace

GroupShape shape_of(const Cluster& cluster, const std::vector<int>& ranks) {
  const auto per_node = static_cast<int64_t>(cluster.devices_per_node);
  const auto per_part = static_cast<int64_t>(cluster.network.nodes_per_part);
  std::vector<int64_t> nodes;
  nodes.reserve(ranks.size());
  for (const int rank : ranks) nodes.push_back(rank / per_node);
  std::ranges::sort(nodes);
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  const bool leaves_part = per_part > 0 && !nodes.empty() && nodes.front() / per_part != nodes.back() / per_part;
  return {.ranks = static_cast<int64_t>(ranks.size()),
          .nodes = static_cast<int64_t>(nodes.size()),
          .leaves_part = leaves_part,
          .changes_adapter = nodes.size() > 1 && changes_adapter(cluster, ranks)};
}

TransferTime transfer_time(const Cluster& c, const GroupShape& g, Collective kind, double bytes) {
  if (g.nodes == 1 && !c.measured.transfers.empty())
    if (const auto measured = measured_time(c.measured, g, kind, bytes)) return *measured;
  const double turns = rounds(kind);
  if (turns == 0) return message(c, g, bytes);
  const auto n = static_cast<double>(g.ranks), nodes = static_cast<double>(g.nodes);
  if (g.nodes == 1) return {LinkKind::node, c.node.start + turns * (n - 1) * c.node.step, bytes / c.node.attained()};
  const double start = c.network.link.start, hop = c.network.link.step;
  if (kind == Collective::all_to_all) {
    // Traffic to other nodes uses the device's own part of the network.
    const double outside = bytes * (n - g.per_node()) / (n - 1);
    const double within = (bytes - outside) / c.node.attained();
    return {LinkKind::network, start + (nodes - 1) * hop, std::max(outside / tapered(c, g), within)};
  }
  // A ring enters and leaves each node once, with as many rings as the group has devices there.
  const double crossing = g.changes_adapter ? c.network.crossing : 1;
  const double bandwidth = std::min(c.node.attained(), g.per_node() * tapered(c, g) * crossing);
  const TransferTime ring = fastest_ring(c, g, turns, bytes, bandwidth);
  if (kind != Collective::all_reduce) return ring;
  const TransferTime tree = {LinkKind::network,
                             start + 2 * (std::ceil(std::log2(nodes)) * hop + (g.per_node() - 1) * c.node.step),
                             bytes / (bandwidth * kTree)};
  return tree.total() < ring.total() ? tree : ring;
}

TransferTime copy_time(const Cluster& c, int64_t ranks, double bytes) {
  if (c.storage_bandwidth == 0)
    throw base::UserError("cluster", "{}: storage.bandwidth is missing, and the run offloads to files", c.path);
  // With several nodes, storage is reached over each device's part of the network.
  const double shared = bytes * static_cast<double>(ranks) / c.storage_bandwidth;
  const double own = c.nodes > 1 ? bytes / c.network.link.attained() : 0;
  return {LinkKind::storage, 0, std::max(shared, own)};
}

}  // namespace kintsugi::simulate
