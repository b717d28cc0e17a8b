// Imports a Hugging Face folder, or a PEFT adapter together with its base model, as a checkpoint.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kintsugi::exchange {

struct ImportOptions {
  std::filesystem::path folder;
  std::filesystem::path run;      // must be empty or absent
  bool allow_not_finite = false;  // accept weights that are NaN or infinity
};

struct Imported {
  std::filesystem::path checkpoint;     // its folder
  int64_t vocab = 0;                    // rows of the model's table
  int64_t ids = 0;                      // of the tokenizer; 0: none
  std::vector<std::string> notes = {};  // what was ignored
};

// Writes a checkpoint of step 0 to the run's folder, with the weights in their dtypes, config.toml and the tokenizer.
// Some tokenizers have ids beyond the table, for inputs that the model does not support (images); texts that contain
// them are rejected on use. Keeps some tens of MiB of weights in memory. Throws UserError, writing nothing, as
// FolderReader and CheckpointWriter do.
Imported import_folder(const ImportOptions& options);

}  // namespace kintsugi::exchange
