// The dims and operations of a model's graphs, for checking plans.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {

// Work that an axis should split: a family of operations, or a kind of state.
struct Place {
  std::string_view family;
  std::vector<tensor::Dim> dims;  // splittable dims; size 0: not checked
};

// The operation rows must outlive it.
struct ModelDims {
  std::vector<tensor::Dim> dims;                // of all values and states, by first appearance, without duplicates
  std::vector<const graph::OpRow*> operations;  // operations that rules can name, by first appearance
  // Forward operations on the widest activations, then the widest weights, gradients and optimizer states. If a
  // narrower one (a key, which lacks `group`) has no dim for an axis, its work is replicated, at little cost.
  std::vector<Place> places;
};

// For graphs that share their states.
ModelDims dims_of(std::span<const graph::Graph* const> graphs);

// Exempts a dim from the size checks.
void forget_size(ModelDims& model, std::string_view dim);

// Names allowed after `in` in a rule: families of operations, and kinds of state.
std::vector<std::string_view> families(const ModelDims& model);
bool is_kind_of_state(std::string_view family);
bool has_flat(std::string_view family);  // a kind of state stored in buckets, which have the dim `flat`

}  // namespace kintsugi::plan
