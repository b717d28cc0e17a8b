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
  // Where they are given: of each id what is to be predicted there, or -1, and its type; of each sample its class; and
  // numbers, as many for each.
  std::vector<int32_t> labels, types, classes;
  std::vector<float> numbers;
};

// Text: a sample on each line, as many ids on each, and what else is known of it:
//
//   101 7 2057 103 102 -1 -1; labels -1 -1 -1 2003 -1 -1 -1; types 0 0 0 0 0 0 0; class 1; numbers 0.5 2
//
// Ids are separated by spaces; -1, at the end, is padding. UserError for anything else.
Samples parse_samples(std::string_view file_name, std::string_view text);

struct WholeTensor {
  tensor::Shape shape;
  std::vector<double> values;
};

struct Inspection {
  double loss = 0;      // the mean
  WholeTensor logits;   // [batch seq vocab], of a model that predicts tokens
  WholeTensor outputs;  // [batch class] or [batch target], of one that says something of samples
  std::map<std::string, WholeTensor> gradients;  // of the loss, by weight
};

// `settings`: of the model, with a layout, whose ranks are threads of this process. `load` fills the weights of a rank.
// What a model learns of samples that say ids alone: the next token; the ids themselves where tokens are masked. Where
// it learns two things, the loss is the sum of the means. UserError where the samples do not fit the model or the
// layout.
Inspection inspect(config::Settings settings, const Samples& samples, const std::function<void(run::Executor&)>& load);

// Gradients by weight, as the tensors of the model's Hugging Face folder are, under their names.
std::map<std::string, WholeTensor> as_in_folder(const std::map<std::string, WholeTensor>& gradients,
                                                const config::Model& model);

// As a safetensors file: "loss" [], "logits", "outputs", and each gradient under the name of its weight, in fp64 or
// fp32.
std::string print(const Inspection& inspection, tensor::DType dtype);

}  // namespace kintsugi::train
