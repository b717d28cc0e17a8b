// What a checkpoint holds, for a person to read.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// Prints it: step, configuration, state, tensors with dims and bytes, totals. `path` is a checkpoint's folder or that
// of a run, which stands for its newest whole one; a *.safetensors file, or a Hugging Face folder, of which only
// tensors are known. With `verify`, every byte of a checkpoint is checked. Throws base::UserError if it is damaged.
void show_checkpoint(const std::filesystem::path& path, bool verify = false);

}  // namespace kintsugi::app
