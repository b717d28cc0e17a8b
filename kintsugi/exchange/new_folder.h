// A folder that is written as a whole or not at all.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace kintsugi::exchange {

// UserError "[where] ..." if the path is a file, or a folder that holds anything.
void require_empty(std::string_view where, const std::filesystem::path& folder);

// A lock on a folder, which ends with the process.
class FolderLock {
 public:
  // Null if another process holds it, or the folder is not there.
  static std::unique_ptr<FolderLock> try_take(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// One that another process writes at the same time is another folder until the first of them is finished.
class NewFolder {
 public:
  // UserError as require_empty. What writers that were killed have left is removed.
  NewFolder(std::string_view where, const std::filesystem::path& folder);
  ~NewFolder();  // if it was not finished: removes what was written
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& part() const { return part_; }  // where to write: ".part-NAME-...", beside it
  // Renames it, durably. UserError if the folder holds anything by now, which stays as it is.
  void finish();

 private:
  std::string_view where_;
  std::filesystem::path folder_;
  std::filesystem::path part_;
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace kintsugi::exchange
