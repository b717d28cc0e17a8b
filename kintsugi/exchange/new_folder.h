// A folder that is written atomically.
#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace kintsugi::exchange {

// Throws UserError "[where] ..." if the path is a file or a nonempty folder.
void require_empty(std::string_view where, const std::filesystem::path& folder);

// A lock on a folder, released with the process.
class FolderLock {
 public:
  // Returns null if another process has locked it, or if the folder does not exist.
  static std::unique_ptr<FolderLock> try_take(const std::filesystem::path& folder);
  ~FolderLock();
  FolderLock(const FolderLock&) = delete;
  FolderLock& operator=(const FolderLock&) = delete;

 private:
  explicit FolderLock(int descriptor) : descriptor_(descriptor) {}
  int descriptor_;
};

// Concurrent writers of the same folder use separate temporary folders until the first finishes.
class NewFolder {
 public:
  // Throws UserError as require_empty does. Removes leftovers of killed writers.
  NewFolder(std::string_view where, const std::filesystem::path& folder);
  ~NewFolder();  // removes what was written unless finished
  NewFolder(const NewFolder&) = delete;
  NewFolder& operator=(const NewFolder&) = delete;

  const std::filesystem::path& part() const { return part_; }  // where to write: ".part-NAME-...", next to it
  // Renames it durably. Throws UserError if the folder is no longer empty, leaving it unchanged.
  void finish();

 private:
  std::string_view where_;
  std::filesystem::path folder_;
  std::filesystem::path part_;
  std::unique_ptr<FolderLock> lock_;
};

}  // namespace kintsugi::exchange
