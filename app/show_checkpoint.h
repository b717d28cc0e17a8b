// The contents of a checkpoint in readable form.
#pragma once

#include <filesystem>

namespace kintsugi::app {

// Prints it: step, configuration, state, tensors with dims and bytes, totals. `path` is a checkpoint, a run (its newest
// complete checkpoint), a *.safetensors file, of which only tensors are known, or a Hugging Face folder, with its model
// if the family is supported. `verify` checks every byte of a checkpoint. Throws base::UserError if it is damaged.
void show_checkpoint(const std::filesystem::path& path, bool verify = false);

}  // namespace kintsugi::app
