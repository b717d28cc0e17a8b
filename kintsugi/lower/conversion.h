// Conversion from one layout to another: which collectives, in which order.
#pragma once

#include <vector>

#include "kintsugi/mesh/layout.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::lower {

enum class Move { slice, reduce_scatter, all_reduce, all_to_all, all_gather };
std::string_view name_of(Move move);

struct Step {
  Move move;
  mesh::Combiner combiner;            // of reduce_scatter and all_reduce
  std::vector<mesh::Factor> factors;  // in the order of cutting
  std::string from;                   // the dim that is joined: all_gather, all_to_all
  std::string to;                     // the dim that is cut: slice, reduce_scatter, all_to_all
  mesh::Layout before, after;
};

// Steps that split come first, since all that follow are then smaller; steps that gather come last. As many factors as
// possible are handled by one step. A partial factor of the goal must be partial already. `one_by_one`: sums are
// reduced factor by factor, so that the order of additions does not depend on the number of factors.
std::vector<Step> conversion(const mesh::Layout& now, const mesh::Layout& goal, bool one_by_one = false);

// Elements that one rank sends.
double traffic(const mesh::Mesh& mesh, const tensor::Shape& whole, const Step& step);

}  // namespace kintsugi::lower
