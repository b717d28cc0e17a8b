// The folder that prepare writes, locked against a second prepare.
#pragma once

#include <filesystem>
#include <optional>

#include "kintsugi/base/file.h"

namespace kintsugi::data {

// Creates the folder if it does not exist; removes it again if it was created and is still empty at the end.
class OutputFolder {
 public:
  // UserError if the folder holds anything and `force` is false, or if another process holds it.
  OutputFolder(const std::filesystem::path& path, bool force);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  // Removes the token files of an earlier run, indexes first, so that old and new files are never taken for a pair.
  void remove_old() const;

 private:
  std::filesystem::path path_;
  bool made_ = false;
  std::optional<base::FileLock> lock_;
};

}  // namespace kintsugi::data
