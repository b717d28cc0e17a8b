// A cluster as the text of its file.
#pragma once

#include <string>

#include "kintsugi/simulate/cluster.h"

namespace kintsugi::simulate {

// What parse_cluster reads; figures to four digits, those with their defaults left out.
std::string to_toml(const Cluster& cluster);

}  // namespace kintsugi::simulate
