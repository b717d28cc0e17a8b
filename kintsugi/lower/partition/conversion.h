// Conversion from one layout to another: which collectives, in which order.
#pragma once

#include <vector>

#include "kintsugi/mesh/layout.h"
#include "kintsugi/program/instruction.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::lower {

enum class Move { slice, reduce_scatter, all_reduce, all_to_all, all_gather, halo, halo_sum };
std::string_view name_of(Move move);

struct Step {
  Move move;
  mesh::Combiner combiner;            // of reduce_scatter and all_reduce
  std::vector<mesh::Factor> factors;  // in the order of cutting
  std::string from;                   // the dim that is joined: all_gather, all_to_all; of halo_sum: the dim
  std::string to;                     // the dim that is cut: slice, reduce_scatter, all_to_all; of halo: the dim
  mesh::Layout before, after;
};

// Steps that split come first, since all that follow are then smaller; steps that gather come last. As many factors as
// possible are handled by one step. A partial factor of the goal must be partial already. `one_by_one`: sums are
// reduced factor by factor, so that the order of additions does not depend on the number of factors.
//
// Halos: blocks that are partial where they overlap (Halo::adds) are first added up to a normal split; halos of the
// goal are fetched last, dim by dim, so that the second of two dims fetches corners too. From another split with halo
// there is no way: the rows that a rank owns need not be in its block.
std::vector<Step> conversion(const mesh::Layout& now, const mesh::Layout& goal, bool one_by_one = false);

// Whether a value in one layout can become the other as far as halos go.
bool halos_allow(const mesh::Layout& now, const mesh::Layout& goal);

// What a step over halos exchanges of a value.
program::Cuts halo_cuts(const tensor::Shape& whole, const Step& step);

// Elements that one rank sends; of halos, the rank that sends most.
double traffic(const mesh::Mesh& mesh, const tensor::Shape& whole, const Step& step);

}  // namespace kintsugi::lower
