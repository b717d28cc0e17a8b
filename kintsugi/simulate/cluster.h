// A cluster as a user describes it: its devices, what joins them, what they cost. Read from a TOML file; the files in
// `clusters/` say where each figure comes from.
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

// The block of a product's output that one unit of a device computes at a time.
struct Tile {
  int64_t rows = 0, columns = 0;

  bool operator==(const Tile&) const = default;
};

struct Device {
  std::string name;
  double threads = 0;  // of a processor, those that a rank has; 0: not known
  double turns = 1;    // that so many devices take on a core: one is as much faster while others do not compute
  double units = 0;    // that compute a tile each: multiprocessors, compute units, cores
  double memory = 0;   // bytes
  double memory_bandwidth = 0;  // bytes/s
  double memory_share = 0.8;    // of it that kernels attain
  double cache_bandwidth = 0;   // bytes/s, from the cache that all units share; 0: not known, and no limit
  double kernel_start = 3e-6;   // seconds that the shortest kernel takes
  double spread = 0;            // by which the speeds of equal devices differ: a standard deviation, relative
  double watts = 0;             // 0: not known
  std::map<tensor::DType, double> peak = {};  // FLOP/s of products, by the type of their operands
  double peak_fp8 = 0;                        // the same for operands of 8 bits; 0: none
};

// Products: tiles in waves over the units.
struct Products {
  double share = 0;      // of the peak, for a product of any depth
  double share_fp8 = 0;  // the same for operands of 8 bits; 0: share
  double depth = 0;      // multiplications of each sum that the beginning and the end of a tile take the time of
  double start = 0;      // seconds, of each product
  std::vector<Tile> tiles = {};
};

// Shares of the peak that attention reaches, of the operations that it needs.
struct Attention {
  double forward = 0, backward = 0;                // of the best kernels for the device
  double triton_forward = 0, triton_backward = 0;  // of FlashAttention in Triton (2022); 0: not known
  double flash2_forward = 0, flash2_backward = 0;  // of FlashAttention-2 (2023); 0: not known
};

// What joins devices. Of the node: each device's to all others. Of the network: a device's part of its node's.
struct Link {
  double bandwidth = 0;   // bytes/s, each way
  double share = 1;       // of it that is attained
  double start = 0;       // seconds, of each collective or message
  double step = 0;        // seconds, of each step of a ring or tree
  double ll128_step = 0;  // seconds, of a step of a ring in NCCL's protocol LL128; 0: the library lacks it
  double ll_step = 0;     // the same in its protocol LL
  double slowdown = 1;    // of kernels that run beside it
  double overlap = 1;     // 0: devices move the bytes themselves, and compute nothing meanwhile

  double attained() const { return bandwidth * share; }
};

// How nodes are joined, and which part of the bandwidth is left where a group does not fit under one switch.
struct Network {
  Link link = {};
  std::string topology = "switch";  // switch, rail, fat tree, dragonfly
  double taper = 1;                 // bandwidth between the parts, over that within one
  double nodes_per_part = 0;        // under one switch or in one group; 0: all
  double adapters = 0;              // of a node, each shared by neighbouring devices; 0: one for each device
  double crossing = 1;              // of the bandwidth, where a ring enters and leaves a node by different adapters
};

struct Cluster {
  std::string name;
  std::string path;  // of the file
  double nodes = 1;
  double devices_per_node = 1;
  double price = 0;  // of a device hour; 0: not known
  Device device = {};
  Products products = {};
  Attention attention = {};
  Link node = {};
  Network network = {};
  Measured measured = {};
  double storage_bandwidth = 0;  // bytes/s of all nodes together; 0: not known
  double node_failure = 0;       // mean seconds between two failures of a node; 0: not known
  double restart = 600;          // seconds from a failure until training goes on

  // By how much longer than an average device the slowest of so many takes, which all others wait for: the expected
  // largest of as many normal deviations (Blom 1958, chapter 6).
  double slowest_of(int64_t ranks) const;

  int64_t devices() const { return static_cast<int64_t>(nodes * devices_per_node); }
};

// UserError, one line with file and line, for a figure that is missing, unknown, impossible or in another unit.
Cluster read_cluster(const std::filesystem::path& path);
Cluster parse_cluster(std::string_view text, std::string_view name);

}  // namespace kintsugi::simulate
