// Reads whole files and writes files crash-safely. Errors are UserErrors that name the path and the system's reason
// (disk full, folder not writable).
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

// A limit on the bytes read: "more than 4.0 MiB; a configuration has less".
struct MostBytes {
  size_t bytes;
  std::string_view what;  // "a configuration"
};

// Reads a whole file; a pipe or device until its end, up to 1 GiB unless a limit is given. Throws UserError beyond the
// limit, and for a FIFO without a writer.
std::string read_file(const std::filesystem::path& path);
std::string read_file(const std::filesystem::path& path, MostBytes most);

// Checks a file of a run folder, which others may have replaced. Throws UserError "[where] ..." unless it is absent or
// a regular file of at most kMostOfRunFile bytes.
inline constexpr uint64_t kMostOfRunFile = uint64_t{1} << 30;
void require_run_file(std::string_view where, const std::filesystem::path& path);

// The folder for temporary files: TMPDIR or /tmp. Throws UserError, naming it, unless it is a folder.
std::filesystem::path temporary_folder();

// Writes a temporary file next to `path`, syncs it and renames it: afterwards `path` holds either `content` or its old
// content.
void write_file_atomically(const std::filesystem::path& path, std::string_view content);

// Renames a finished folder into place and syncs its parent. `to` must not exist.
void rename_durably(const std::filesystem::path& from, const std::filesystem::path& to);
// Atomically and durably swaps the finished folder `from` with the folder `to`. Returns false, with nothing changed, if
// the file system does not support this.
bool exchange_folders(const std::filesystem::path& from, const std::filesystem::path& to);
void sync_folder(const std::filesystem::path& folder);
void make_folders(const std::filesystem::path& folder);
// Owns the folders that make_folders created and removes the empty ones on destruction.
class MadeFolders {
 public:
  explicit MadeFolders(const std::filesystem::path& folder);  // creates it and its missing parents
  MadeFolders() = default;
  void remove_if_empty() noexcept;

 private:
  std::vector<std::filesystem::path> made_;  // innermost first
};
// Removes a file, or a folder with its contents; for destructors.
void remove_if_possible(const std::filesystem::path& path) noexcept;

// How a file is written.
//   through_cache  stays in the system's page cache
//   to_disk        bypasses the page cache, on a separate thread; takes about half the time for a large file, which
//   must
//                  then be read from disk. Falls back to through_cache if the file system does not support it
enum class Writing : uint8_t { through_cache, to_disk };

// Writes a file sequentially, through a buffer of 2 MiB (three if to disk). The content is guaranteed only after
// close(), which syncs, has returned.
class FileWriter {
 public:
  explicit FileWriter(const std::filesystem::path& path, Writing way = Writing::through_cache);
  ~FileWriter();  // closes without syncing; errors are lost
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;

  void write(std::span<const std::byte> bytes);
  void write(std::string_view text) { write(std::as_bytes(std::span(text.data(), text.size()))); }
  void close();
  void close_unsynced();  // for a file that need not survive a crash of the machine
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
  Buffer buffer_;  // allocated on first use
  size_t buffered_ = 0;
  std::unique_ptr<Behind> behind_;  // the thread, once a buffer has been full
};

// An advisory lock on a file, held for the lifetime of the object. Throws UserError with the text `taken` if another
// process holds it.
class FileLock {
 public:
  FileLock(const std::filesystem::path& path, std::string_view taken);
  ~FileLock();
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

 private:
  int descriptor_ = -1;
};

// Whether the open file is still the one at that path; true if unknown.
bool is_at(int descriptor, const std::filesystem::path& path);

// Keeps a folder open, to distinguish it from another folder of the same name.
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
