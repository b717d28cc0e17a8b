// A Hugging Face folder, or an adapter as PEFT writes it with the model that it belongs to, becomes a checkpoint of
// ours.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace kintsugi::exchange {

struct ImportOptions {
  std::filesystem::path folder;
  std::filesystem::path run;      // must be empty, or not exist yet
  bool allow_not_finite = false;  // weights that are NaN or infinity are no error
};

struct Imported {
  std::filesystem::path checkpoint;     // its folder
  int64_t vocab = 0;                    // rows of the model's table
  int64_t ids = 0;                      // of the tokenizer; 0: there is none
  std::vector<std::string> notes = {};  // what was passed over
};

// Writes a checkpoint of step 0 into the run's folder, with the weights in their dtypes, config.toml and the tokenizer.
// Some tokenizers have ids beyond the table, for what the model does not take (images): texts with them are refused
// where they come up. Of the weights, some tens of MiB are in memory at one time. UserError, and then nothing is
// written, as FolderReader and CheckpointWriter.
Imported import_folder(const ImportOptions& options);

}  // namespace kintsugi::exchange
