// Weights as int8 codes with a scale per column, and back (models/lora.h).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

// A matrix in codes: `experts` matrices [rows columns], one after another.
struct CodedWeight {
  std::string weight, scale;  // names of its states
  tensor::Shape shape, scales;
  int64_t columns = 1;
  int64_t rows = 1;  // of each expert's matrix

  // The index of the scale of an element.
  int64_t scale_at(int64_t element) const { return element / (rows * columns) * columns + element % columns; }
};

// The matrices that a model's settings store in codes; none unless lora.frozen_dtype is "int8".
std::vector<CodedWeight> coded_weights(const config::Settings& settings);

// The scale of each column of row-major w [rows columns], of `experts` of them: the largest magnitude / 127, in fp32.
// Raises the scales of an earlier part of the same matrices, in `magnitudes`.
void raise_magnitudes(const CodedWeight& layer, int64_t first, std::span<const float> w, std::span<float> magnitudes);
// The nearest code to w / scale, ties to even; 0 if the scale is 0.
int8_t code_of(float w, float scale);

// The codes and scales of floating-point weights. Reading throws UserError if a weight is NaN or infinite.
std::unique_ptr<checkpoint::TensorSource> quantized(std::unique_ptr<checkpoint::TensorSource> weights,
                                                    const config::Settings& settings);

// The weights that codes and scales are, of dtype train.dtype; `settings` are those of the model in codes.
std::unique_ptr<checkpoint::TensorSource> dequantized(std::unique_ptr<checkpoint::TensorSource> codes,
                                                      const config::Settings& settings);

}  // namespace kintsugi::exchange
