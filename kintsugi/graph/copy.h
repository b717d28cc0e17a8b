// Copies an operation of one graph to another: how a pass rewrites a graph.
#pragma once

#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::graph {

// Appends `op` of `from` to `to`, in the current phase and layer of `to`, with one input for each of its own. Its
// outputs have their types and names, the names followed by `mark`. Returns the outputs.
std::vector<ValueId> append_copy(Graph& to, const Graph& from, const Op& op, std::vector<ValueId> ins,
                                 std::string_view mark = {});

// The types of its outputs, each at its position.
OutTypes out_types(const Graph& from, const Op& op);

}  // namespace kintsugi::graph
