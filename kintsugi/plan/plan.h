// A plan: a mesh of ranks, and rules that determine which dim of which family of operations is split over which axis.
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

// For each operation and each state, an axis is assigned to the first rule that fits.
struct Plan {
  mesh::Mesh mesh;
  std::vector<Rule> rules = {};
  bool keep = false;        // keep gathered activations from forward to backward
  bool keep_logits = true;  // for a split vocabulary: keep logits from the loss to its gradient
  bool repeat = false;      // allow replicated work if an axis splits no dim; else that is an error
  // Sum over ranks and micro-batches in one binary tree over equal units of the global batch, which is the same for
  // every number of data ranks. See in_units().
  bool units = false;
  tensor::DType wire = tensor::DType::f32;  // dtype of gradients in collectives; f32: unchanged
  // Pipeline: chunk g of stages x chunks is on stage g % stages.
  int chunks = 1;                    // per stage
  std::vector<int64_t> layers = {};  // per chunk, in order; empty: balanced by computed cost
  std::string schedule = "1f1b";     // name in schedules()

  int stages() const { return mesh.stages(); }
};

// Converts [parallel] to rules: the user's own, then those of each axis, then those of ZeRO. The mesh has every axis,
// including those of size 1 except the pipeline axis; an axis of size 1 has no rules. Throws UserError if a text in
// `rules` is not a rule.
Plan plan_from(const config::Parallel& parallel, std::span<const AxisRow> axes = axis_rows());

// The plan with units: adjacent units of a micro-batch are assigned to the ranks that reduce first, those along the
// first factor.
Plan in_units(Plan plan);

// "plan: 4 ranks, mesh data=2 tensor=2\n  batch -> data\n"
std::string print(const Plan& plan);

}  // namespace kintsugi::plan
