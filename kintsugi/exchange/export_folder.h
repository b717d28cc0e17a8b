// A model of ours becomes a Hugging Face folder, which transformers reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::exchange {

struct ExportOptions {
  std::filesystem::path model;         // whatever open_model opens
  std::filesystem::path folder;        // must be empty, or not exist yet
  std::optional<tensor::DType> dtype;  // floating; that in which each weight is stored if not given
  int64_t shard_bytes = 5'000'000'000;
  bool allow_not_finite = false;  // weights that are NaN or infinity, also for `dtype`, are no error
  bool merge = false;             // a model with adapters is written as the whole model that computes the same
};

struct Exported {
  std::filesystem::path from;
  size_t tensors = 0, files = 0;  // safetensors
  uint64_t bytes = 0;             // of the tensors
  bool adapter = false;           // the adapters alone, for PEFT
  std::string note;               // what transformers cannot read; "" if nothing
};

// Writes config.json, generation_config.json, the tokenizer, and model.safetensors, or files of at most `shard_bytes`
// (or one tensor) with model.safetensors.index.json. Of the weights, some tens of MiB are in memory at one time.
// Of a model with adapters, without `merge`, these alone as PEFT reads them, and the tokenizer (peft_folder.h).
// UserError, and then nothing is written, if the family's folders cannot say what the model is, or if weights would be
// NaN or infinity.
Exported export_folder(const ExportOptions& options);

}  // namespace kintsugi::exchange
