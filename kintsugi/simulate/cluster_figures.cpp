#include "kintsugi/simulate/cluster_figures.h"

namespace kintsugi::simulate {

using tensor::DType;

namespace {

constexpr Range kShare = {0.01, 1}, kTime = {1e-9, 1}, kRate = {1e6, 1e15};

}  // namespace

const std::vector<Figure>& figures() {
  using enum Measure;
  using enum Needed;
  static const std::vector<Figure> list = {
      {"cluster", "nodes", count, {1, 1e6}, always, [](Cluster& c) -> double& { return c.nodes; }},
      {"cluster",
       "devices_per_node",
       count,
       {1, 1024},
       always,
       [](Cluster& c) -> double& { return c.devices_per_node; }},
      {"cluster", "price_per_device_hour", price, {0, 1e4}, never, [](Cluster& c) -> double& { return c.price; }},
      {"device", "units", count, {1, 1e5}, always, [](Cluster& c) -> double& { return c.device.units; }},
      {"device", "memory", bytes, {1e8, 1e14}, always, [](Cluster& c) -> double& { return c.device.memory; }},
      {"device",
       "memory_bandwidth",
       bytes_per_second,
       {1e9, 1e14},
       always,
       [](Cluster& c) -> double& { return c.device.memory_bandwidth; }},
      {"device", "threads", count, {1, 1e4}, never, [](Cluster& c) -> double& { return c.device.threads; }},
      {"device", "turns", count, {1, 1e4}, never, [](Cluster& c) -> double& { return c.device.turns; }},
      {"device", "memory_share", share, kShare, never, [](Cluster& c) -> double& { return c.device.memory_share; }},
      {"device", "cache_bandwidth", bytes_per_second, kRate, never,
       [](Cluster& c) -> double& { return c.device.cache_bandwidth; }},
      {"device", "kernel_start", seconds, kTime, never, [](Cluster& c) -> double& { return c.device.kernel_start; }},
      {"device", "spread", share, {0, 0.2}, never, [](Cluster& c) -> double& { return c.device.spread; }},
      {"device", "watts", watts, {1, 1e5}, never, [](Cluster& c) -> double& { return c.device.watts; }},
      {"peak",
       "fp64",
       flops_per_second,
       {1e9, 1e17},
       never,
       [](Cluster& c) -> double& { return c.device.peak[DType::f64]; }},
      {"peak",
       "fp32",
       flops_per_second,
       {1e9, 1e17},
       never,
       [](Cluster& c) -> double& { return c.device.peak[DType::f32]; }},
      {"peak",
       "fp16",
       flops_per_second,
       {1e9, 1e17},
       never,
       [](Cluster& c) -> double& { return c.device.peak[DType::f16]; }},
      {"peak",
       "bf16",
       flops_per_second,
       {1e9, 1e17},
       never,
       [](Cluster& c) -> double& { return c.device.peak[DType::bf16]; }},
      {"peak", "fp8", flops_per_second, {1e9, 1e17}, never, [](Cluster& c) -> double& { return c.device.peak_fp8; }},
      {"products", "share_fp8", share, kShare, never, [](Cluster& c) -> double& { return c.products.share_fp8; }},
      {"products", "share", share, kShare, always, [](Cluster& c) -> double& { return c.products.share; }},
      {"products", "depth", count, {0, 1e5}, always, [](Cluster& c) -> double& { return c.products.depth; }},
      {"products", "start", seconds, kTime, always, [](Cluster& c) -> double& { return c.products.start; }},
      {"attention", "forward", share, kShare, always, [](Cluster& c) -> double& { return c.attention.forward; }},
      {"attention", "backward", share, kShare, always, [](Cluster& c) -> double& { return c.attention.backward; }},
      {"attention", "triton_forward", share, kShare, never,
       [](Cluster& c) -> double& { return c.attention.triton_forward; }},
      {"attention", "triton_backward", share, kShare, never,
       [](Cluster& c) -> double& { return c.attention.triton_backward; }},
      {"attention", "flash2_forward", share, kShare, never,
       [](Cluster& c) -> double& { return c.attention.flash2_forward; }},
      {"attention", "flash2_backward", share, kShare, never,
       [](Cluster& c) -> double& { return c.attention.flash2_backward; }},
      {"node", "bandwidth", bytes_per_second, kRate, several_devices,
       [](Cluster& c) -> double& { return c.node.bandwidth; }},
      {"node", "share", share, kShare, never, [](Cluster& c) -> double& { return c.node.share; }},
      {"node", "start", seconds, kTime, several_devices, [](Cluster& c) -> double& { return c.node.start; }},
      {"node", "step", seconds, kTime, several_devices, [](Cluster& c) -> double& { return c.node.step; }},
      {"node", "ll128_step", seconds, kTime, never, [](Cluster& c) -> double& { return c.node.ll128_step; }},
      {"node", "ll_step", seconds, kTime, never, [](Cluster& c) -> double& { return c.node.ll_step; }},
      {"node", "slowdown", share, {1, 10}, never, [](Cluster& c) -> double& { return c.node.slowdown; }},
      {"node", "overlap", count, {0, 1}, never, [](Cluster& c) -> double& { return c.node.overlap; }},
      {"network", "bandwidth", bytes_per_second, kRate, several_nodes,
       [](Cluster& c) -> double& { return c.network.link.bandwidth; }},
      {"network", "share", share, kShare, never, [](Cluster& c) -> double& { return c.network.link.share; }},
      {"network", "start", seconds, kTime, several_nodes, [](Cluster& c) -> double& { return c.network.link.start; }},
      {"network", "step", seconds, kTime, several_nodes, [](Cluster& c) -> double& { return c.network.link.step; }},
      {"network", "ll128_step", seconds, kTime, never, [](Cluster& c) -> double& { return c.network.link.ll128_step; }},
      {"network", "ll_step", seconds, kTime, never, [](Cluster& c) -> double& { return c.network.link.ll_step; }},
      {"network", "slowdown", share, {1, 10}, never, [](Cluster& c) -> double& { return c.network.link.slowdown; }},
      {"network", "overlap", count, {0, 1}, never, [](Cluster& c) -> double& { return c.network.link.overlap; }},
      {"network", "taper", share, kShare, never, [](Cluster& c) -> double& { return c.network.taper; }},
      {"network",
       "nodes_per_part",
       count,
       {1, 1e6},
       never,
       [](Cluster& c) -> double& { return c.network.nodes_per_part; }},
      {"network", "adapters", count, {1, 1024}, never, [](Cluster& c) -> double& { return c.network.adapters; }},
      {"network", "crossing", share, kShare, never, [](Cluster& c) -> double& { return c.network.crossing; }},
      {"storage",
       "bandwidth",
       bytes_per_second,
       {1e6, 1e15},
       never,
       [](Cluster& c) -> double& { return c.storage_bandwidth; }},
      {"reliability", "node", seconds, {3600, 1e10}, never, [](Cluster& c) -> double& { return c.node_failure; }},
      {"reliability", "restart", seconds, {0, 1e6}, never, [](Cluster& c) -> double& { return c.restart; }},
  };
  return list;
}

const std::vector<ClusterText>& texts() {
  static const std::vector<ClusterText> list = {
      {"cluster", "name", [](Cluster& c) -> std::string& { return c.name; }},
      {"device", "name", [](Cluster& c) -> std::string& { return c.device.name; }},
      {"network", "topology", [](Cluster& c) -> std::string& { return c.network.topology; }},
  };
  return list;
}

}  // namespace kintsugi::simulate
