// A model that was saved: a checkpoint of ours, or a Hugging Face folder.
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

// The state of a checkpoint that was imported: no run made it.
inline constexpr std::string_view kNoState = "{}";

struct SavedModel {
  std::unique_ptr<checkpoint::TensorSource> weights;
  std::string config;     // config.toml; of a folder, [model] and the dtype are as config.json says, the rest defaults
  std::string tokenizer;  // tokenizer.json; empty: none
  // Not trained here: a folder, or the import of one. Its texts began with the tokens that the tokenizer says texts
  // begin with; those of `prepare` do not.
  bool made_elsewhere = false;
  std::vector<std::string> notes = {};  // on what was passed over in a Hugging Face folder

  const std::filesystem::path& folder() const { return weights->folder(); }
  config::Settings settings() const;
};

// All ranks call together and get the same result or the same error. `path` is a Hugging Face folder, an adapter's as
// PEFT writes it, a checkpoint's folder, or a run's, whose newest complete checkpoint is opened. UserError if it is
// none of these, or damaged.
SavedModel open_model(const std::filesystem::path& path, comm::Communicator& all);

// The same of a folder that is open.
std::string config_of(const FolderReader& reader);
std::string tokenizer_of(const FolderReader& reader);

}  // namespace kintsugi::exchange
