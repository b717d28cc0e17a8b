#include "kintsugi/exchange/new_folder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;

// Prefix of the names, before a suffix.
fs::path named(const fs::path& folder) {
  std::error_code error;
  const fs::path path = fs::weakly_canonical(folder, error);
  return error ? folder : path;
}

}  // namespace

void require_empty(std::string_view where, const fs::path& folder) {
  std::error_code error;
  const std::string shown = base::in_quotes(folder.string());
  if (!fs::exists(folder, error)) return;
  if (!fs::is_directory(folder, error))
    throw base::UserError(where, "{} is a file; name a folder that is empty or does not exist", shown);
  const bool empty = fs::is_empty(folder, error);
  if (error) throw base::UserError(where, "cannot read {}: {}", shown, error.message());
  if (!empty) throw base::UserError(where, "{} is not empty; name a folder that is empty or does not exist", shown);
}

std::unique_ptr<FolderLock> FolderLock::try_take(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return nullptr;
  // A file system without locks cannot refuse one.
  if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK)
    return std::unique_ptr<FolderLock>(new FolderLock(descriptor));
  ::close(descriptor);
  return nullptr;
}

FolderLock::~FolderLock() {
  ::close(descriptor_);
}

NewFolder::NewFolder(std::string_view where, const fs::path& folder) : where_(where), folder_(named(folder)) {
  require_empty(where, folder);
  const std::string begin = ".part-" + folder_.filename().string();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_.parent_path(), error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(begin) || (name.size() > begin.size() && name[begin.size()] != '-')) continue;
    if (FolderLock::try_take(entry.path())) base::remove_if_possible(entry.path());
  }
  part_ = folder_.parent_path() / fmt::format("{}-{}", begin, ::getpid());
  base::remove_if_possible(part_);  // failure is reported on writing
  base::make_folders(part_);
  lock_ = FolderLock::try_take(part_);
}

NewFolder::~NewFolder() {
  base::remove_if_possible(part_);
}

void NewFolder::finish() {
  base::sync_folder(part_);
  // Replaces an empty folder; the system rejects a nonempty one.
  if (::rename(part_.c_str(), folder_.c_str()) != 0) {
    const int error = errno;
    if (error == ENOTEMPTY || error == EEXIST)
      throw base::UserError(where_, "{} was filled by another program meanwhile; nothing there was changed",
                            base::in_quotes(folder_.string()));
    throw base::UserError(where_, "cannot rename {} to {}: {}", base::in_quotes(part_.string()),
                          base::in_quotes(folder_.string()), std::strerror(error));
  }
  base::sync_folder(folder_.parent_path());
}

}  // namespace kintsugi::exchange
