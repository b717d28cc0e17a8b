// A plan: a mesh of ranks, and rules that say which dim of which family of operations is split over which axis.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/mesh/mesh.h"
#include "kintsugi/plan/axes.h"
#include "kintsugi/plan/rule.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::plan {

// In each operation, and for each state, an axis goes to the first rule that fits.
struct Plan {
  mesh::Mesh mesh;
  std::vector<Rule> rules = {};
  bool keep = false;        // a gathered activation is kept from forward to backward
  bool keep_logits = true;  // of a split vocabulary, from the loss to its gradient
  bool repeat = false;      // an axis that finds no dim may repeat work; else that is an error
  // Sums over ranks and micro-batches are added in one binary tree over equal units of the global batch, the same for
  // every number of data ranks. See in_units().
  bool units = false;
  tensor::DType wire = tensor::DType::f32;  // in which gradients travel; f32: as they are
  // Layers over the axis that cuts them: chunk g of stages x chunks is on stage g % stages.
  int chunks = 1;                    // on each stage
  std::vector<int64_t> layers = {};  // of each chunk in order; empty: equal in computed cost
  std::string schedule = "1f1b";     // of schedules()

  int stages() const { return mesh.stages(); }
};

// [parallel] as rules: the user's own, then those of each axis, then those of ZeRO. Every axis is in the mesh, of size
// 1 too, except one that cuts layers; an axis of size 1 has no rules. UserError if a text in `rules` is no rule.
Plan plan_from(const config::Parallel& parallel, std::span<const AxisRow> axes = axis_rows());

// The plan with units: neighbouring units of a micro-batch are assigned to the ranks that add first, those along the
// first factor.
Plan in_units(Plan plan);

// "plan: 4 ranks, mesh data=2 tensor=2\n  batch -> data\n"
std::string print(const Plan& plan);

}  // namespace kintsugi::plan
