// The tables of `kintsugi bench`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/calibrate/measure_collectives.h"
#include "kintsugi/calibrate/measure_machine.h"
#include "kintsugi/simulate/cluster.h"

namespace kintsugi::app {

// Bytes of a value that collectives are measured with, from small to large.
std::vector<int64_t> standard_sizes();

std::string cores_table(const std::vector<calibrate::CoreRates>& rates);
// Products, then the other kernels, each beside the limit of the device that it is nearer to.
std::string kernels_table(const std::vector<simulate::MeasuredKernel>& kernels, const simulate::Device& limits);
// memory: bytes a second that all ranks read and write together.
std::string collectives_table(const std::vector<calibrate::CollectiveTime>& times, double memory);

}  // namespace kintsugi::app
