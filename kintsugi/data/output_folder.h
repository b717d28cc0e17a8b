// The folder that prepare writes, locked against a second prepare.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/base/file.h"

namespace kintsugi::data {

// The names of all files that prepare writes into its output, or removes from it.
std::vector<std::string> output_names();

// Creates the folder if it does not exist; removes it again if it was created and is still empty at the end. Everything
// is written into another folder first: ".part-NAME" beside it, or ".part-files" in it where the two cannot be
// exchanged (the folder is a mount point, this process works in it, the file system cannot). What a killed prepare left
// of these is removed.
class OutputFolder {
 public:
  // UserError if the folder holds anything and `force` is false, or if another process holds it.
  OutputFolder(const std::filesystem::path& path, bool force);
  ~OutputFolder();
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;

  const std::filesystem::path& part() const { return part_; }  // where to write
  // Puts what was written in place of the output_names() of before; everything else in the folder stays. Where the
  // folders are exchanged, old or new files are there at each instant, and nothing else. Where they are not, the
  // indexes are removed first and come last, so that a kill in between leaves no index that does not belong to its
  // files.
  void publish();

 private:
  void remove_leftovers() const;
  bool make_part_beside();
  bool exchange();
  void move_files() const;

  std::filesystem::path path_;  // as it was given
  std::filesystem::path real_;  // where it is
  std::filesystem::path part_;
  base::MadeFolders made_;
  bool beside_ = false;  // part_ can be exchanged with it
  std::optional<base::FileLock> lock_;
  std::optional<base::FileLock> part_lock_;
};

}  // namespace kintsugi::data
