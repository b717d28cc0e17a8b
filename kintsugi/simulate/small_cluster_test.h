// A cluster with round figures, for tests.
#pragma once

#include "kintsugi/simulate/cluster.h"

namespace kintsugi::simulate {

// Nodes of 8 devices: 100 FLOP/s and 10 bytes/s for 10 units, 5 bytes/s within a node, 1 byte/s per device between
// nodes, no startup costs.
inline Cluster small_cluster() {
  Cluster c;
  c.nodes = 1000;
  c.devices_per_node = 8;
  c.device = {.name = "device",
              .units = 10,
              .memory = 1e9,
              .memory_bandwidth = 10,
              .memory_share = 1,
              .kernel_start = 0,
              .peak = {{tensor::DType::f32, 100}}};
  c.products = {.share = 1, .depth = 0, .start = 0, .tiles = {{2, 2}}};
  c.attention = {.forward = 0.5, .backward = 0.25};
  c.node = {.bandwidth = 5};
  c.network.link = {.bandwidth = 1};
  return c;
}

}  // namespace kintsugi::simulate
