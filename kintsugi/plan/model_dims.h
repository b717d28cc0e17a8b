// The dims and operations of a model, as its graphs have them, to check a plan against.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/graph/graph.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::plan {

// Work that an axis should split: of a family of operations, or a kind of state.
struct Place {
  std::string_view family;
  std::vector<tensor::Dim> dims;  // that may be split; size 0: not compared
};

// The rows of operations must outlive it.
struct ModelDims {
  std::vector<tensor::Dim> dims;                // of all values and states, each name once, in order of appearance
  std::vector<const graph::OpRow*> operations;  // that a rule can name, in order of appearance
  // The forward operations on the widest activations, then the widest weights, gradients and optimizer states. If a
  // narrower one (a key, which lacks `group`) has no dim for an axis, its work is repeated, which costs little.
  std::vector<Place> places;
};

// Of graphs that share their states.
ModelDims dims_of(std::span<const graph::Graph* const> graphs);

// The size of a dim is not compared with the axes that it is split over.
void forget_size(ModelDims& model, std::string_view dim);

// The names allowed after `in` in a rule: the families of operations, and the kinds of state.
std::vector<std::string_view> families(const ModelDims& model);
bool is_kind_of_state(std::string_view family);
bool has_flat(std::string_view family);  // a kind of state that is stored in buckets, which have the dim `flat`

}  // namespace kintsugi::plan
