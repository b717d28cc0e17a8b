// Conversion between layouts: which collectives, in which order.
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
  mesh::Combiner combiner;            // reduce_scatter, all_reduce
  std::vector<mesh::Factor> factors;  // in the order of cutting
  std::string from;                   // dim to join: all_gather, all_to_all; halo_sum: its dim
  std::string to;                     // dim to cut: slice, reduce_scatter, all_to_all; halo: its dim
  mesh::Layout before, after;
};

// Steps that split come first, since they make all later steps smaller; steps that gather come last. Each step handles
// as many factors as possible. A partial factor of the goal must already be partial. `one_by_one`: reduces factor by
// factor, so that the order of additions does not depend on the number of factors.
//
// Halos: blocks that are partial where they overlap (Halo::adds) are first summed to a normal split; halos of the goal
// are fetched last, dim by dim, so that the second of two dims also fetches corners. There is no conversion from
// another split with halo: the rows that a rank owns need not be in its block.
std::vector<Step> conversion(const mesh::Layout& now, const mesh::Layout& goal, bool one_by_one = false);

// Whether halos permit converting a value from one layout to the other.
bool halos_allow(const mesh::Layout& now, const mesh::Layout& goal);

// The halo exchange of a step.
program::Cuts halo_cuts(const tensor::Shape& whole, const Step& step);

// Elements that one rank sends; for halos, the rank that sends the most.
double traffic(const mesh::Mesh& mesh, const tensor::Shape& whole, const Step& step);

}  // namespace kintsugi::lower
