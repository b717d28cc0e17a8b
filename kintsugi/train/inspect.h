// What a model computes of given tokens: its loss, its logits, and the gradient of each weight; for checks from
// outside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/tensor/shape.h"

namespace kintsugi::train {

struct Samples {
  int64_t count = 0;
  int64_t sequence = 0;  // ids of each
  std::vector<int32_t> ids;
};

// Text: a sample on each line, ids separated by spaces, all lines of one length. UserError for anything else.
Samples parse_samples(std::string_view file_name, std::string_view text);

struct WholeTensor {
  tensor::Shape shape;
  std::vector<double> values;
};

struct Inspection {
  double loss = 0;                               // the mean over all ids but the first of each sample
  WholeTensor logits;                            // [batch seq vocab]
  std::map<std::string, WholeTensor> gradients;  // of the loss, by weight
};

// `settings`: of the model, with a layout, whose ranks are threads of this process. `load` fills the weights of a rank.
// UserError where the samples do not fit the model or the layout.
Inspection inspect(config::Settings settings, const Samples& samples, const std::function<void(run::Executor&)>& load);

// Gradients by weight, as the tensors of the model's Hugging Face folder are, under their names.
std::map<std::string, WholeTensor> as_in_folder(const std::map<std::string, WholeTensor>& gradients,
                                                const config::Model& model);

// As a safetensors file: "loss" [], "logits", and each gradient under the name of its weight, in fp64 or fp32.
std::string print(const Inspection& inspection, tensor::DType dtype);

}  // namespace kintsugi::train
