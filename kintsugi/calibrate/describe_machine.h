// From measurements to a cluster: this machine as the planner reads it.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/calibrate/measure_collectives.h"
#include "kintsugi/calibrate/measure_machine.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::calibrate {

// A device is a rank with so many threads; all of them are measured at once.
struct Devices {
  int ranks = 1, threads = 1;
};

// Of one node, with the peaks and the memory that a device has while all compute. Kernels and transfers are to be
// added.
simulate::Cluster describe_machine(const Devices& devices, const std::vector<CoreRates>& cores);

// Adds what was measured, in place of what was there of the same; and what the estimates of other kernels and transfers
// take from it: shares of the peak and of the memory's bandwidth, the bandwidth of links.
void add_kernels(simulate::Cluster& cluster, const std::vector<simulate::MeasuredKernel>& kernels);
void add_transfers(simulate::Cluster& cluster, const std::vector<CollectiveTime>& times);

}  // namespace kintsugi::calibrate
