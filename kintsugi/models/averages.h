// Moving averages of weights ([train] ema_decay) in place of the weights.
#pragma once

#include <string>
#include <string_view>

#include "kintsugi/graph/graph.h"

namespace kintsugi::models {

constexpr std::string_view kAverageSuffix = ".average";  // after the weight's name

// The same graph, reading the average of each weight that has one, in the weight's dtype.
graph::Graph with_averages(const graph::Graph& graph);

}  // namespace kintsugi::models
