#include "kintsugi/train/run_folder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/config/resume.h"
#include "kintsugi/models/models.h"

namespace kintsugi::train {

namespace {

std::string machine_line() {
  char host[256] = {};
  ::gethostname(host, sizeof host - 1);
  const base::Processor processor = base::this_processor();
  return fmt::format("{}{}, {}, {}\n", kMachineLine, base::one_line(host),
                     processor.name.empty() ? "unnamed processor" : base::one_line(processor.name),
                     base::counted(base::usable_cores(), "core"));
}

// What a command that is given the folder would read as its model; "" if nothing.
std::string_view other_model_in(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) { return std::filesystem::exists(folder / name, ignored); };
  if (has("index.json")) return "a checkpoint";
  const bool weights = has("model.safetensors") || has("model.safetensors.index.json") || has("pytorch_model.bin") ||
                       has("pytorch_model.bin.index.json");
  return weights && has("config.json") ? "a model in the format of Hugging Face" : "";
}

}  // namespace

RunFolder::RunFolder(config::Resolved& resolved, bool resume) : path_(resolved.settings.train.folder) {
  const std::filesystem::path config = path_ / "config.toml";
  if (resume && !std::filesystem::exists(config))
    throw base::UserError("train", "nothing to resume in \"{}\": it has no config.toml; start without --resume",
                          path_.string());
  if (const std::string_view holds = resume ? "" : other_model_in(path_); !holds.empty())
    throw base::UserError("train",
                          "\"{}\" holds {}, which other commands would read instead of the run; set another "
                          "train.folder",
                          path_.string(), holds);
  made_ = base::MadeFolders(path_);
  folder_ = base::FolderIdentity(path_);
  lock_ = std::make_unique<base::FileLock>(
      path_ / ".lock",
      fmt::format("another process trains in \"{}\"; wait for it, or set another train.folder", path_.string()));
  if (resume) {
    const config::Resolved saved = config::load_saved(config, models::catalog());
    resolved = config::resume_with(saved, std::move(resolved));
    const double before = saved.settings.train.learning_rate, now = resolved.settings.train.learning_rate;
    if (before != now)
      spdlog::warn("train.learning_rate was {} and is {} from here on: the schedule is not that of one run", before,
                   now);
  } else if (std::filesystem::exists(metrics()) || !checkpoint::list(path_).empty()) {
    throw base::UserError("train", "\"{}\" already holds a run; continue it with --resume, or set another train.folder",
                          path_.string());
  }
  remove_end(path_);
}

RunFolder::~RunFolder() {
  base::if_memory_lasts([this] {  // paths take memory
    std::error_code error;
    if (!std::filesystem::exists(path_ / "config.toml", error) && folder_.is_at(path_)) {
      base::remove_if_possible(path_ / ".lock");
      lock_.reset();
    }
    made_.remove_if_empty();
  });
}

void RunFolder::require_there() const {
  if (folder_.is_at(path_)) return;
  throw base::UserError(
      "train",
      "\"{}\" was removed or moved while the run used it: its metrics and checkpoints are lost, or lie "
      "where it was moved to; leave a run's folder in place until the run has ended",
      path_.string());
}

void RunFolder::save_end(const RunEnd& end) const {
  std::error_code error;
  if (folder_.is_at(path_) && std::filesystem::exists(path_ / "config.toml", error)) write_end(path_, end);
}

void RunFolder::save_config(const config::Resolved& resolved) const {
  base::write_file_atomically(path_ / "config.toml", config::to_toml(resolved) + machine_line());
}

}  // namespace kintsugi::train
