// The output folder of prepare, locked against a concurrent prepare.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"

namespace kintsugi::data {

// The names of all files that prepare writes to or removes from its output.
std::vector<std::string> output_names();

// Creates the folder if it does not exist, and removes it if it was created and is still empty at the end. Writes
// everything to another folder first: ".part-NAME" next to it, or ".part-files" inside it where the two cannot be
// exchanged (the folder is a mount point or the working directory of this process, or the file system does not support
// it). Removes leftovers of a killed prepare.
class OutputFolder {
 public:
  // Throws UserError if the folder is not empty and `force` is false, or if another process has locked it.
  OutputFolder(const std::filesystem::path& path, bool force);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& part() const { return part_; }  // where to write
  // Replaces the previous output_names() by the new files; keeps everything else in the folder. Where the folders are
  // exchanged, the replacement is atomic. Otherwise removes the indexes first and moves them last, so that a kill in
  // between leaves no index that does not match its files.
  void publish();

 private:
  void remove_leftovers() const;
  bool make_part_beside();
  bool exchange();
  void move_files() const;

  std::filesystem::path path_;  // as given
  std::filesystem::path real_;  // resolved
  std::filesystem::path part_;
  base::MadeFolders made_;
  bool beside_ = false;  // part_ can be exchanged with it
  std::optional<base::FileLock> lock_;
  std::optional<base::FileLock> part_lock_;
};

}  // namespace kintsugi::data
