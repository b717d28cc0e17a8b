// Adapters in PEFT's format: adapter_config.json and adapter_model.safetensors, with lora_A [r in] and lora_B [out r]
// per module (Mangrulkar et al. 2022, https://github.com/huggingface/peft).
//
// One of their modules may correspond to several of our layers (query, key and value in one tensor). Export
// concatenates the layers' factors, adding their ranks; import gives each layer the module's A and its own rows of B.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::exchange {

bool is_adapter_folder(const std::filesystem::path& folder);

struct ExportedAdapter {
  size_t tensors = 0;
  uint64_t bytes = 0;
};

// Writes both files, with factors in fp32. `base` is written as base_model_name_or_path. Throws UserError if the family
// has no Hugging Face folders.
ExportedAdapter write_adapter(const checkpoint::TensorSource& from, const config::Settings& settings,
                              const std::string& base, const std::filesystem::path& folder);

// A loaded adapter: [lora] of its model, and its factors with our names.
struct Adapter {
  config::Lora lora;
  std::map<std::string, std::pair<tensor::Shape, std::vector<float>>, std::less<>> factors;
  uint64_t checksum = 0;
};

// The base model named by adapter_config.json: an existing path, as given or relative to the adapter's folder. Throws
// UserError if there is none.
std::filesystem::path base_of(const std::filesystem::path& folder);

// Throws UserError for unsupported adapters (DoRA, biases, whole modules), a module that the model lacks, or a factor
// of another shape. Pads factors of lower rank with zeros, and folds deviations from the first scale into B.
Adapter read_adapter(const std::filesystem::path& folder, const config::Settings& base);

// The weights of `base` plus those of the adapter.
std::unique_ptr<checkpoint::TensorSource> with_adapter(std::unique_ptr<checkpoint::TensorSource> base, Adapter adapter,
                                                       const std::filesystem::path& folder);

}  // namespace kintsugi::exchange
