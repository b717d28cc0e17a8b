// The contents of a checkpoint in readable form.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// Prints it: step, configuration, state, tensors with dims and bytes, totals. `path` is a checkpoint's folder, a run's
// folder (for its newest complete checkpoint), a *.safetensors file, of which only tensors are known, or a
// Hugging Face folder, of which the model is known too, if we have its family. With `verify`, every byte of a
// checkpoint is checked. Throws base::UserError if it is damaged.
void show_checkpoint(const std::filesystem::path& path, bool verify = false);

}  // namespace kintsugi::app
