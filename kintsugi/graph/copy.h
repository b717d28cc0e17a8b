// Copies an operation from one graph to another; passes rewrite graphs with it.
#pragma once

#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"

namespace kintsugi::graph {

// Appends `op` of `from` to `to`, in the current phase and layer of `to`, with `ins` in place of its own inputs. Its
// outputs keep their types and names, with `mark` appended to the names. Returns the outputs.
std::vector<ValueId> append_copy(Graph& to, const Graph& from, const Op& op, std::vector<ValueId> ins,
                                 std::string_view mark = {});

// The types of its outputs, by position.
OutTypes out_types(const Graph& from, const Op& op);

}  // namespace kintsugi::graph
