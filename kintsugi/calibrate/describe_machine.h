// Converts measurements to a cluster: this machine as the planner sees it.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/calibrate/measure_collectives.h"
#include "kintsugi/calibrate/measure_machine.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::calibrate {

// Each device is a rank with this number of threads; all are measured concurrently.
struct Devices {
  int ranks = 1, threads = 1;
};

// Describes one node, with the peak rates and memory of a device while all devices compute. Add kernels and transfers
// afterwards.
simulate::Cluster describe_machine(const Devices& devices, const std::vector<CoreRates>& cores);

// Adds measurements, replacing earlier ones of the same key, and derives what estimates of other kernels and transfers
// use: fractions of peak and memory bandwidth, link bandwidths.
void add_kernels(simulate::Cluster& cluster, const std::vector<simulate::MeasuredKernel>& kernels);
void add_transfers(simulate::Cluster& cluster, const std::vector<CollectiveTime>& times);

}  // namespace kintsugi::calibrate
