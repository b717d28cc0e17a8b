// A saved model: a checkpoint, or a Hugging Face folder.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/exchange/folder_reader.h"

namespace kintsugi::exchange {

// The state of an imported checkpoint, which no run made.
inline constexpr std::string_view kNoState = "{}";

struct SavedModel {
  std::unique_ptr<checkpoint::TensorSource> weights;
  std::string config;     // config.toml; for a folder, [model] and dtype from config.json, defaults otherwise
  std::string tokenizer;  // tokenizer.json; empty: none
  // Not trained here: a folder, or an imported one. Its texts began with the tokenizer's begin tokens; those of
  // `prepare` do not.
  bool made_elsewhere = false;
  std::vector<std::string> notes = {};  // on what was ignored in a Hugging Face folder

  const std::filesystem::path& folder() const { return weights->folder(); }
  config::Settings settings() const;
};

// Call collectively on all ranks; all get the same result or throw the same error. `path` is a Hugging Face folder, a
// PEFT adapter folder, a checkpoint folder, or a run folder, whose newest complete checkpoint is opened. Throws
// UserError if it is none of these or is corrupt.
SavedModel open_model(const std::filesystem::path& path, comm::Communicator& all);

// The same for an open folder.
std::string config_of(const FolderReader& reader);
std::string tokenizer_of(const FolderReader& reader);

}  // namespace kintsugi::exchange
