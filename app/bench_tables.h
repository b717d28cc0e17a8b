// The tables of `kintsugi bench`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/calibrate/measure_collectives.h"
#include "kintsugi/calibrate/measure_machine.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::app {

// Message sizes for which collectives are measured, ascending.
std::vector<int64_t> standard_sizes();

std::string cores_table(const std::vector<calibrate::CoreRates>& rates);
// Matmuls, then the other kernels, each compared with the nearer limit of the device.
std::string kernels_table(const std::vector<simulate::MeasuredKernel>& kernels, const simulate::Device& limits);
// memory: combined memory traffic of all ranks, in bytes per second.
std::string collectives_table(const std::vector<calibrate::CollectiveTime>& times, double memory);

}  // namespace kintsugi::app
