// Files: whole reads, memory maps, and writes that survive a crash. Errors are UserErrors that name the path and the
// system's reason (a full disk, a folder that cannot be written).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kintsugi::base {

// What is not read further: "more than 4.0 MiB; a configuration has less".
struct MostBytes {
  size_t bytes;
  std::string_view what;  // "a configuration"
};

// A whole file; of a pipe or a device, all until its end, which is at most a GiB where no limit is given. UserError
// where there is more, and for a FIFO that no process writes.
std::string read_file(const std::filesystem::path& path);
std::string read_file(const std::filesystem::path& path, MostBytes most);

// A file of a run that others may have put something else in place of. UserError "[where] ..." unless it is a regular
// file of at most kMostOfRunFile bytes, or is not there.
inline constexpr uint64_t kMostOfRunFile = uint64_t{1} << 30;
void require_run_file(std::string_view where, const std::filesystem::path& path);

// The folder for temporary files, TMPDIR or /tmp. UserError that names it unless it is a folder.
std::filesystem::path temporary_folder();

// Writes a temporary file beside `path`, syncs it and renames it: afterwards `path` holds either `content` or its old
// content.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Renames a finished folder into place and syncs its parent. `to` must not exist.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
// Replaces the folder `to` by the finished folder `from` in one step, durably; then `from` is what `to` was. False, and
// nothing is changed, where the file system cannot do this.
bool exchange_folders(const std::filesystem::path& from, const std::filesystem::path& to);
void sync_folder(const std::filesystem::path& folder);
void make_folders(const std::filesystem::path& folder);
// Folders that make_folders made, and that are removed again unless something is left in them.
class MadeFolders {
 public:
  explicit MadeFolders(const std::filesystem::path& folder);  // makes it, and what of its parents does not exist
  MadeFolders() = default;
  void remove_if_empty() noexcept;

 private:
  std::vector<std::filesystem::path> made_;  // the innermost first
};
// A file, or a folder with what is in it; for destructors.
void remove_if_possible(const std::filesystem::path& path) noexcept;

// How a file is written.
//   through_cache  it stays in the system's page cache
//   to_disk        past the page cache, by a thread of its own; a large file takes about half the time, and must then
//   be
//                  read from the disk. Where the file system cannot do that, it is written through the cache
enum class Writing : uint8_t { through_cache, to_disk };

// A file written sequentially, through a buffer of 2 MiB; three where it is written to disk. The content is guaranteed
// only after `close`, which syncs, has returned.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path, Writing way = Writing::through_cache);
  ~FileWriter();  // closes without a sync; errors are lost
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void close();
  uint64_t size() const { return size_; }

 private:
  struct Free {
    void operator()(std::byte* buffer) const { std::free(buffer); }
  };
  using Buffer = std::unique_ptr<std::byte, Free>;  // aligned
  class Behind;

  static Buffer make_buffer();
  void write_all(std::span<const std::byte> bytes, bool past_cache);
  void set_past_cache(bool past_cache);

  std::filesystem::path path_;
  int descriptor_ = -1;
  Writing way_;
  uint64_t size_ = 0;
  Buffer buffer_;  // made when it is needed
  size_t buffered_ = 0;
  std::unique_ptr<Behind> behind_;  // the thread, once a buffer was full
};

// An advisory lock on a file, held while the object exists. Throws UserError with the text `taken` if another process
// holds it.
class FileLock {
 public:
  FileLock(const std::filesystem::path& path, std::string_view taken);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

// Whether what is open lies at that path still; true if nobody can tell.
bool is_at(int descriptor, const std::filesystem::path& path);

// A folder that is kept open, so that another of the same name is told apart from it.
class FolderIdentity {
 public:
  FolderIdentity() = default;
  explicit FolderIdentity(const std::filesystem::path& folder);
  FolderIdentity(FolderIdentity&& other) noexcept;
  FolderIdentity& operator=(FolderIdentity&& other) noexcept;
  ~FolderIdentity();

  bool is_at(const std::filesystem::path& path) const { return base::is_at(descriptor_, path); }

 private:
  int descriptor_ = -1;
};

}  // namespace kintsugi::base
