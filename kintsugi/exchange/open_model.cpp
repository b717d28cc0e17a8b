#include "kintsugi/exchange/open_model.h"

#include <fmt/format.h>

#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/open.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/exchange/export_tokenizer.h"
#include "kintsugi/exchange/peft_folder.h"
#include "kintsugi/models/models.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;

// Ranks whose files are the same on a shared file system read the same bytes. Others, with separate copies, read all of
// theirs once more to compare.
void require_same_weights(const FolderReader& reader, comm::Communicator& all) {
  std::string places, contents;
  comm::together(all, [&] { places = reader.files().places(); });
  const bool elsewhere = comm::text_of_rank_0(all, places) != places;
  if (!comm::on_any(all, elsewhere)) return;
  comm::together(all, [&] { contents = reader.files().contents(); });
  comm::require_same(all, "model", "Hugging Face folder", contents);
}

SavedModel open_folder(const fs::path& path, comm::Communicator& all) {
  SavedModel model;
  const FolderReader* opened = nullptr;
  std::string identity;
  comm::together(all, [&] {
    auto reader = std::make_unique<FolderReader>(path);
    model.config = config_of(*reader);
    model.tokenizer = tokenizer_of(*reader);
    identity = fmt::format("{}: checksum {}, of the tokenizer {}", path.string(),
                           checkpoint::checksum_text(reader->checksum()),
                           checkpoint::checksum_text(checkpoint::checksum_of(model.tokenizer)));
    model.notes = reader->notes();
    opened = reader.get();
    model.weights = std::move(reader);
    model.made_elsewhere = true;
  });
  comm::require_same(all, "model", "Hugging Face folder", identity);
  require_same_weights(*opened, all);
  return model;
}

// Whether samples began with the token that the tokenizer prepends to texts, as written by export.
void read_begin(const fs::path& folder, config::Data& data) {
  const fs::path path = folder / "tokenizer_config.json";
  std::error_code error;
  if (!fs::exists(path, error)) return;
  const auto json = base::Json::parse("model", path.string(), base::read_file(path));
  const auto begins = json.is_object() ? json.find(kBeginSamples) : std::nullopt;
  if (!begins || !begins->boolean()) return;
  const auto tokenizer = text::find_tokenizer(folder);
  if (!tokenizer || tokenizer->special_tokens().before.empty()) return;
  data.begin_samples = true;
  data.first_token = tokenizer->special_tokens().before.front();
}

}  // namespace

config::Settings SavedModel::settings() const {
  return config::saved_text(config, models::catalog(), (folder() / checkpoint::kConfigFile).string()).settings;
}

std::string config_of(const FolderReader& reader) {
  config::Given given = config::read_text("", "", models::catalog());
  config::Settings theirs;
  theirs.model = reader.config().model;
  theirs.train.dtype = name_of(reader.config().dtype);
  read_begin(reader.folder(), theirs.data);
  const auto is_taken = [&](const config::Key& key) {
    if (theirs.data.begin_samples && key.section == "data")
      return key.name == "begin_samples" || key.name == "first_token";
    return key.section == "model" || key.full_name() == "train.dtype";
  };
  for (size_t i = 0; i < config::keys().size(); ++i) {
    const config::Key& key = config::keys()[i];
    if (!is_taken(key)) continue;
    key.set(given.settings, key.get(theirs));
    given.origins[i] = {config::Origin::Kind::derived, "config.json"};
  }
  return config::to_toml({config::fill_derived(std::move(given), 1), {}});
}

std::string tokenizer_of(const FolderReader& reader) {
  const auto tokenizer = text::find_tokenizer(reader.folder());
  return tokenizer ? tokenizer->to_json() : "";
}

namespace {

// An adapter's folder: its base model, and its factors next to the weights.
SavedModel open_adapted(const fs::path& path, comm::Communicator& all) {
  fs::path base;
  comm::together(all, [&] {
    base = base_of(path);
    if (is_adapter_folder(base))
      throw base::UserError("model", "{}: the model that the adapter belongs to is an adapter itself; merge that first",
                            base::in_quotes(path.string()));
  });
  SavedModel model = open_model(base, all);
  std::string identity;
  comm::together(all, [&] {
    config::Resolved resolved = config::saved_text(model.config, models::catalog(), path.string());
    if (resolved.settings.lora.rank > 0)
      throw base::UserError("model", "{} already has adapters; export it with --merge first",
                            base::in_quotes(base.string()));
    Adapter adapter = read_adapter(path, resolved.settings);
    identity = fmt::format("{}: checksum {}", path.string(), checkpoint::checksum_text(adapter.checksum));
    resolved.settings.lora = adapter.lora;
    resolved.settings.train.init_from = base.string();
    for (size_t i = 0; i < config::keys().size(); ++i)
      if (config::keys()[i].section == "lora" || config::keys()[i].full_name() == "train.init_from")
        resolved.origins[i] = {config::Origin::Kind::derived, "adapter_config.json"};
    model.config = config::to_toml(resolved);
    model.weights = with_adapter(std::move(model.weights), std::move(adapter), path);
    model.made_elsewhere = true;
  });
  comm::require_same(all, "model", "adapter", identity);
  return model;
}

}  // namespace

SavedModel open_model(const fs::path& path, comm::Communicator& all) {
  bool adapted = false;
  comm::together(all, [&] {
    require_no_weight_file(path);
    adapted = is_adapter_folder(path);
  });
  if (comm::of_rank_0(all, adapted)) return open_adapted(path, all);
  bool theirs = false;
  comm::together(all, [&] { theirs = is_hugging_face(path); });
  if (comm::of_rank_0(all, theirs)) return open_folder(path, all);
  SavedModel model;
  auto reader = checkpoint::open_checkpoint(path, all);
  comm::together(all, [&] {
    model.config = reader->config();
    model.tokenizer = reader->tokenizer();
    model.made_elsewhere = reader->state() == kNoState;
  });
  model.weights = std::move(reader);
  return model;
}

}  // namespace kintsugi::exchange
