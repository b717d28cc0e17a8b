// Adapters as PEFT writes them: adapter_config.json and adapter_model.safetensors, with lora_A [r in] and lora_B [out
// r] of each module (Mangrulkar et al. 2022, https://github.com/huggingface/peft).
//
// A module of theirs may be several layers of ours (query, key and value in one tensor). On export it gets their
// factors side by side, with their ranks added; on import each of the layers gets the module's A and its own rows of B.
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

// Writes the two files, the factors in fp32. `base`: what base_model_name_or_path says. UserError if the family has no
// Hugging Face folders.
ExportedAdapter write_adapter(const checkpoint::TensorSource& from, const config::Settings& settings,
                              const std::string& base, const std::filesystem::path& folder);

// An adapter that was read: [lora] of its model, and its factors under our names.
struct Adapter {
  config::Lora lora;
  std::map<std::string, std::pair<tensor::Shape, std::vector<float>>, std::less<>> factors;
  uint64_t checksum = 0;
};

// What adapter_config.json names as the model that it belongs to: a path that is there, as it is or within the
// adapter's folder. UserError if none is.
std::filesystem::path base_of(const std::filesystem::path& folder);

// UserError for adapters of another kind (DoRA, biases, whole modules), a module that the model lacks, or a factor of
// another shape. Factors of lower rank than the largest end with zeros, and B has what other scales than the first's
// differ by.
Adapter read_adapter(const std::filesystem::path& folder, const config::Settings& base);

// The weights of `base`, and the adapter's.
std::unique_ptr<checkpoint::TensorSource> with_adapter(std::unique_ptr<checkpoint::TensorSource> base, Adapter adapter,
                                                       const std::filesystem::path& folder);

}  // namespace kintsugi::exchange
