// The trained Llama of shared/data/stories260K, for tests.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>

#include "kintsugi/base/file.h"
#include "tests/paths.h"

namespace kintsugi::tests {

inline std::filesystem::path stories_folder() {
  return std::filesystem::path(shared_folder()) / "data" / "stories260K";
}

inline nlohmann::json read_json(const std::filesystem::path& path) {
  return nlohmann::json::parse(base::read_file(path));
}

// The Hugging Face folder.
inline std::filesystem::path stories_model() {
  return stories_folder() / "hf_derived";
}

}  // namespace kintsugi::tests
