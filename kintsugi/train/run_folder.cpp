#include "kintsugi/train/run_folder.h"

#include <fmt/format.h>

#include "kintsugi/base/error.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/config/resume.h"
#include "kintsugi/models/models.h"

namespace kintsugi::train {

RunFolder::RunFolder(config::Resolved& resolved, bool resume) : path_(resolved.settings.train.folder) {
  const std::filesystem::path config = path_ / "config.toml";
  if (resume && !std::filesystem::exists(config))
    throw base::UserError("train", "nothing to resume in \"{}\": it has no config.toml; start without --resume",
                          path_.string());
  base::make_folders(path_);
  folder_ = base::FolderIdentity(path_);
  lock_ = std::make_unique<base::FileLock>(
      path_ / ".lock",
      fmt::format("another process trains in \"{}\"; wait for it, or set another train.folder", path_.string()));
  if (resume) {
    resolved = config::resume_with(config::load_saved(config, models::catalog()), std::move(resolved));
  } else if (std::filesystem::exists(metrics()) || !checkpoint::list(path_).empty()) {
    throw base::UserError("train", "\"{}\" already holds a run; continue it with --resume, or set another train.folder",
                          path_.string());
  }
  remove_end(path_);
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
  base::write_file_atomically(path_ / "config.toml", config::to_toml(resolved));
}

}  // namespace kintsugi::train
