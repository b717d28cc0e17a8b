// A Hugging Face folder becomes a checkpoint of ours.
#pragma once

#include <filesystem>

namespace kintsugi::exchange {

struct ImportOptions {
  std::filesystem::path folder;
  std::filesystem::path run;      // must be empty, or not exist yet
  bool allow_not_finite = false;  // weights that are NaN or infinity are no error
};

// Writes a checkpoint of step 0 into the run's folder, with the weights in their dtypes, config.toml and the tokenizer,
// and returns its folder. Of the weights, some tens of MiB are in memory at one time. UserError, and then nothing is
// written, as FolderReader and CheckpointWriter.
std::filesystem::path import_folder(const ImportOptions& options);

}  // namespace kintsugi::exchange
