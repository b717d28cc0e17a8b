// The folder of a run: a lock, the resolved configuration, metrics and checkpoints.
#pragma once

#include <filesystem>
#include <memory>

#include "kintsugi/base/file.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/train/run_end.h"

namespace kintsugi::train {

// Below config.toml: "# trained on HOST, PROCESSOR, 8 cores".
inline constexpr std::string_view kMachineLine = "\n# trained on ";

class RunFolder {
 public:
  // Locks the folder for a new run, or to resume the one in it; `resolved` then becomes the configuration to resume
  // with. Throws UserError if another process uses the folder, if a new run would overwrite one, or if resuming would
  // change a fixed setting.
  RunFolder(config::Resolved& resolved, bool resume);
  // Leaves no folder if the run never saved its configuration.
  ~RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path metrics() const { return path_ / "metrics.jsonl"; }
  // Writes config.toml.
  void save_config(const config::Resolved& resolved) const;
  // Writes how the run ended, once the folder has a config.toml.
  void save_end(const RunEnd& end) const;
  // Throws UserError if the folder has since been removed or moved: what is written would be lost or end up elsewhere.
  void require_there() const;

 private:
  std::filesystem::path path_;
  base::MadeFolders made_;
  base::FolderIdentity folder_;
  std::unique_ptr<base::FileLock> lock_;
};

}  // namespace kintsugi::train
