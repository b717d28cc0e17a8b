// Writes a cluster as the text of its file.
#pragma once

#include <string>

#include "kintsugi/simulate/cluster.h"

namespace kintsugi::simulate {

// The input of parse_cluster(); figures to four digits, without defaults.
std::string to_toml(const Cluster& cluster);

}  // namespace kintsugi::simulate
