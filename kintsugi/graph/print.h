// Prints a graph, one operation per line.
#pragma once

#include <string>

#include "kintsugi/graph/graph.h"

namespace kintsugi::graph {

//   %3 x[batch:2 seq:4 embed:8] fp32 = add(%1, %2)   layer 0
std::string print(const Graph& graph);
std::string print(const StateTable& states);

}  // namespace kintsugi::graph
