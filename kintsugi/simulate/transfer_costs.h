// Time of collectives, messages and copies on otherwise idle links.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::simulate {

// What a transfer occupies: links within a node, to the network, or to storage.
enum class LinkKind : uint8_t { node, network, storage };

// latency: before bytes flow, unaffected by other transfers. seconds: of the bytes, at full bandwidth.
struct TransferTime {
  LinkKind link = LinkKind::node;
  double latency = 0;
  double seconds = 0;

  double total() const { return latency + seconds; }
};

// A group of ranks, by the nodes they are on. Ranks fill nodes in order.
struct GroupShape {
  int64_t ranks = 1;
  int64_t nodes = 1;
  bool leaves_part = false;      // of the network
  bool changes_adapter = false;  // no two devices of the group on a node share a network adapter

  double per_node() const { return static_cast<double>(ranks) / static_cast<double>(nodes); }
};
GroupShape shape_of(const Cluster& cluster, const std::vector<int>& ranks);

// For a collective, a message or a copy. `wire_bytes`: sent per rank.
TransferTime transfer_time(const Cluster& cluster, const GroupShape& group, program::Collective kind,
                           double wire_bytes);
// To or from storage, which all ranks of the run share, and which several nodes reach over the network.
TransferTime copy_time(const Cluster& cluster, int64_t ranks, double bytes);

}  // namespace kintsugi::simulate
