// Where the weights of a model are in the tensors of its family's Hugging Face folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/models/family.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::exchange {

// A weight in a tensor, or the part of it that the tensor holds: a box of one index of its first dim. The element of
// the part with indices i is at first + sum of i[d] * stride[d], counted in elements of the tensor; no two dims of more
// than one index have a stride in common, nor does a dim reach into the next larger stride.
struct MappedWeight {
  std::string name;     // "layer3.attention.query.weight"
  tensor::Shape whole;  // of the weight
  tensor::Shape shape;  // of the part
  int64_t begin = 0;    // of the part, along the weight's first dim
  int64_t first = 0;
  std::vector<int64_t> stride;
};

struct MappedTensor {
  std::string name;            // in the folder, with its prefix
  std::vector<int64_t> shape;  // elements
  std::vector<MappedWeight> weights;

  int64_t elements() const;
};

// All tensors of the model, in the order of the family's rows; each weight of the model is in one of them, or in one
// for each index of its first dim, and no two overlap. Needs the model's derived values. UserError for a weight for
// which the folder has no place.
std::vector<MappedTensor> weight_map(const models::Family& family, const config::Model& model);

// The names of the tensors that a folder may hold beside those of the map: of a tied head, which is the embedding.
std::vector<std::string> tied_names(const models::Family& family, const config::Model& model);

}  // namespace kintsugi::exchange
