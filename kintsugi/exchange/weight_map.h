// Maps a model's weights to the tensors of its family's Hugging Face folders.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/models/family.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::exchange {

// A weight in a tensor, or the part of it that the tensor contains: a box of one index of its first dim. The element of
// the part with indices i is at first + sum of i[d] * stride[d], in elements of the tensor; no two dims of more than
// one index share a stride, and no dim extends into the next larger stride.
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

// Returns all tensors of the model, in the order of the family's rows. Each weight of the model is in one tensor, or in
// one per index of its first dim, without overlap. Requires the model's derived values. Throws UserError for a weight
// that the folder cannot represent.
std::vector<MappedTensor> weight_map(const models::Family& family, const config::Model& model);
// The same with other names than the family's; only the names of `folder` are used.
std::vector<MappedTensor> weight_map(const models::Family& family, const config::Model& model,
                                     const models::HuggingFace& folder);

// Names of additional tensors that a folder may contain: a tied head, which equals the embedding.
std::vector<std::string> tied_names(const models::Family& family, const config::Model& model);

}  // namespace kintsugi::exchange
