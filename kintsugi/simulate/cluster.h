// A cluster as a user describes it: its devices, its interconnects, and their costs. Read from a TOML file; the files
// in `clusters/` state the source of each figure.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/simulate/measured.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::simulate {

// The block of a matmul's output that one unit of a device computes at a time.
struct Tile {
  int64_t rows = 0, columns = 0;

  bool operator==(const Tile&) const = default;
};

struct Device {
  std::string name;
  double threads = 0;  // CPUs: threads per rank; 0: unknown
  double turns = 1;    // number of devices that share a core: one is that much faster while the others are idle
  double units = 0;    // units that compute one tile each: multiprocessors, compute units, cores
  double memory = 0;   // bytes
  double memory_bandwidth = 0;                // bytes/s
  double memory_share = 0.8;                  // fraction that kernels attain
  double cache_bandwidth = 0;                 // bytes/s, from the cache shared by all units; 0: unknown, no limit
  double kernel_start = 3e-6;                 // seconds taken by the shortest kernel
  double spread = 0;                          // relative standard deviation of the speed of equal devices
  double watts = 0;                           // 0: unknown
  std::map<tensor::DType, double> peak = {};  // matmul FLOP/s, by operand type
  double peak_fp8 = 0;                        // the same for 8-bit operands; 0: none
};

// Matmuls: tiles in waves over the units.
struct Products {
  double share = 0;      // of the peak, for a matmul of any depth
  double share_fp8 = 0;  // the same for 8-bit operands; 0: share
  double depth = 0;      // cost of prologue and epilogue of a tile, in multiplications per sum
  double start = 0;      // seconds per matmul
  std::vector<Tile> tiles = {};
};

// Fraction of the peak that attention reaches, relative to the operations it needs.
struct Attention {
  double forward = 0, backward = 0;                // of the best kernels for the device
  double triton_forward = 0, triton_backward = 0;  // of FlashAttention in Triton (2022); 0: unknown
  double flash2_forward = 0, flash2_backward = 0;  // of FlashAttention-2 (2023); 0: unknown
};

// An interconnect. Node: each device's link to all others. Network: a device's part of its node's link.
struct Link {
  double bandwidth = 0;   // bytes/s per direction
  double share = 1;       // fraction attained
  double start = 0;       // seconds per collective or message
  double step = 0;        // seconds per step of a ring or tree
  double ll128_step = 0;  // seconds per ring step in NCCL's LL128 protocol; 0: the library lacks it
  double ll_step = 0;     // the same for its LL protocol
  double slowdown = 1;    // of kernels that run concurrently
  double overlap = 1;     // 0: devices move the bytes themselves, and compute nothing meanwhile

  double attained() const { return bandwidth * share; }
};

// How nodes are connected, and the fraction of bandwidth left if a group does not fit under one switch.
struct Network {
  Link link = {};
  std::string topology = "switch";  // switch, rail, fat tree, dragonfly
  double taper = 1;                 // bandwidth between the parts relative to that within one
  double nodes_per_part = 0;        // under one switch or in one group; 0: all
  double adapters = 0;              // per node, each shared by adjacent devices; 0: one per device
  double crossing = 1;  // fraction of the bandwidth where a ring enters and leaves a node by different adapters
};

struct Cluster {
  std::string name;
  std::string path;  // of the file
  double nodes = 1;
  double devices_per_node = 1;
  double price = 0;  // per device hour; 0: unknown
  Device device = {};
  Products products = {};
  Attention attention = {};
  Link node = {};
  Network network = {};
  Measured measured = {};
  double storage_bandwidth = 0;  // bytes/s over all nodes; 0: unknown
  double node_failure = 0;       // mean seconds between failures of a node; 0: unknown
  double restart = 600;          // seconds from a failure until training continues

  // The factor by which the slowest of that many devices, which all others wait for, is slower than the average: the
  // expected maximum of as many normal deviates (Blom 1958, chapter 6).
  double slowest_of(int64_t ranks) const;

  // Matmul FLOP/s of a device. UserError if the file has none for the type.
  double peak(tensor::DType dtype) const;
  // The factor by which kernels are slower while bytes flow within the node or over the network.
  double slowdown(bool in_node, bool over_network) const;

  int64_t devices() const { return static_cast<int64_t>(nodes * devices_per_node); }
};

// Throws UserError, one line with file and line number, for a figure that is missing, unknown, impossible or in another
// unit.
Cluster read_cluster(const std::filesystem::path& path);
Cluster parse_cluster(std::string_view text, std::string_view name);

}  // namespace kintsugi::simulate
