// Computes loss, logits and weight gradients of a model for given tokens, for external checks.
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
  int64_t sequence = 0;  // ids per sample
  std::vector<int32_t> ids;
  // Optional: the target of each id or -1, and its type; the class of each sample; and numbers, equally many per
  // sample.
  std::vector<int32_t> labels, types, classes;
  std::vector<float> numbers;
};

// Text format: one sample per line, with equally many ids, and optional further parts:
//
//   101 7 2057 103 102 -1 -1; labels -1 -1 -1 2003 -1 -1 -1; types 0 0 0 0 0 0 0; class 1; numbers 0.5 2
//
// Ids are separated by spaces; trailing -1 is padding. Throws UserError for anything else.
Samples parse_samples(std::string_view file_name, std::string_view text);

struct WholeTensor {
  tensor::Shape shape;
  std::vector<double> values;
};

struct Inspection {
  double loss = 0;                               // mean, of the objective
  double balance = 0;                            // with a weight for it: the balance loss, summed over layers
  WholeTensor logits;                            // [batch seq vocab], for models that predict tokens
  WholeTensor outputs;                           // [batch class] or [batch target], for models that predict per sample
  std::map<std::string, WholeTensor> gradients;  // of the loss, by weight
};

// `settings`: a model with a layout, whose ranks become threads of this process. `load` fills the weights of a rank.
// The default target for samples of ids only: the next token; the ids themselves for masked objectives. With two
// objectives, the loss is the sum of the means. With `balance_weight` above 0, gradients include that times the global
// balance loss of experts, of the samples' own load. Throws UserError if the samples do not fit the model or the
// layout, and for a weight without experts.
Inspection inspect(config::Settings settings, const Samples& samples, const std::function<void(run::Executor&)>& load,
                   double balance_weight = 0.0);

// Converts gradients by weight to the tensors and names of the model's Hugging Face folder.
std::map<std::string, WholeTensor> as_in_folder(const std::map<std::string, WholeTensor>& gradients,
                                                const config::Model& model);

// Serializes as safetensors: "loss" [], "balance" [] if it is not 0, "logits", "outputs", and each gradient under the
// name of its weight, in fp64 or fp32.
std::string print(const Inspection& inspection, tensor::DType dtype);

}  // namespace kintsugi::train
