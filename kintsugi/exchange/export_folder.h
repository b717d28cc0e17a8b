// Exports a model as a Hugging Face folder for transformers.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/exchange/image_names.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

struct ExportOptions {
  std::filesystem::path model;         // anything that open_model opens
  std::filesystem::path folder;        // must be empty or absent
  std::optional<tensor::DType> dtype;  // floating type; default: each weight's stored type
  int64_t shard_bytes = 5'000'000'000;
  bool allow_not_finite = false;  // accept weights that are NaN or infinity, also in `dtype`
  bool average = false;           // the moving averages of the weights instead of the weights
  // Names of weights, and the form of config.json: transformers, or torchvision; default: those of the family.
  std::optional<Program> names = {};
  bool merge = false;  // merge adapters into the weights and write the full model
};

struct Exported {
  std::filesystem::path from;
  size_t tensors = 0, files = 0;  // safetensors
  uint64_t bytes = 0;             // of the tensors
  bool adapter = false;           // adapters only, for PEFT
  std::string note;               // what transformers cannot read; "" if nothing
};

// Writes config.json, generation_config.json, the tokenizer, and model.safetensors, or files of at most `shard_bytes`
// (or one tensor) with model.safetensors.index.json. Keeps some tens of MiB of weights in memory. For a model with
// adapters, without `merge`, writes only these in PEFT's format, and the tokenizer (peft_folder.h). Throws UserError,
// writing nothing, if the family's folders cannot express the model, or if weights would be NaN or infinity.
Exported export_folder(const ExportOptions& options);

}  // namespace kintsugi::exchange
