// The keys of a cluster file that hold one figure or one text, as a list: read_cluster() reads them, to_toml() writes
// them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/simulate/cluster.h"
#include "kintsugi/simulate/quantity.h"

namespace kintsugi::simulate {

// When a figure is required.
enum class Needed : uint8_t { always, several_devices, several_nodes, never };

struct Figure {
  std::string_view section, key;
  Measure measure;
  Range range;
  Needed needed;
  std::function<double&(Cluster&)> place;
};

struct ClusterText {
  std::string_view section, key;
  std::function<std::string&(Cluster&)> place;
};

const std::vector<Figure>& figures();
const std::vector<ClusterText>& texts();

}  // namespace kintsugi::simulate
