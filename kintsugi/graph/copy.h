// An operation of one graph, once more in another: how a pass writes a graph anew.
#pragma once

#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::graph {

// Appends `op` of `from` to `to`, in the phase and layer where `to` stands, with one input for each of its own. Its
// outputs have their types and names, the names followed by `mark`. Returned are the outputs.
std::vector<ValueId> append_copy(Graph& to, const Graph& from, const Op& op, std::vector<ValueId> ins,
                                 std::string_view mark = {});

// The types of its outputs, each at its position.
OutTypes out_types(const Graph& from, const Op& op);

}  // namespace kintsugi::graph
