#include "kintsugi/data/link_tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace kintsugi::data {
namespace {

namespace fs = std::filesystem;

bool copy(const fs::directory_entry& entry, const fs::path& to) {
  std::error_code error;
  if (entry.is_symlink(error)) {
    fs::copy_symlink(entry.path(), to, error);
    return !error;
  }
  if (!entry.is_regular_file(error) || !fs::copy_file(entry.path(), to, error)) return false;
  copy_owner(entry.path(), to);
  fs::last_write_time(to, entry.last_write_time(error), error);
  return true;
}

bool bring(const fs::directory_entry& entry, const fs::path& to) {
  std::error_code error;
  if (!entry.is_directory(error) || entry.is_symlink(error)) {
    if (::link(entry.path().c_str(), to.c_str()) == 0 || errno == EEXIST)
      return true;  // for a symbolic link: the link itself
    return copy(entry, to);
  }
  if (is_mount_point(entry.path())) return false;
  if (fs::create_directory(to, error)) copy_owner(entry.path(), to);
  if (error || !link_tree(entry.path(), to, {})) return false;
  fs::last_write_time(to, entry.last_write_time(error), error);
  return true;
}

}  // namespace

bool link_tree(const fs::path& from, const fs::path& to, const std::function<bool(const std::string&)>& skip) {
  std::error_code error;
  for (fs::directory_iterator i(from, error), end; !error && i != end; i.increment(error)) {
    const std::string name = i->path().filename().string();
    if (!(skip && skip(name)) && !bring(*i, to / name)) return false;
  }
  return !error;
}

bool is_mount_point(const fs::path& folder) {
  struct statx found = {};
  if (::statx(AT_FDCWD, folder.c_str(), AT_SYMLINK_NOFOLLOW, STATX_TYPE, &found) != 0) return true;
  return (found.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) == 0 ||
         (found.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0;
}

void copy_owner(const fs::path& from, const fs::path& to) {
  struct stat status = {};
  if (::stat(from.c_str(), &status) != 0) return;
  if (::chown(to.c_str(), status.st_uid, status.st_gid) != 0 && ::chown(to.c_str(), -1, status.st_gid) != 0) {
    // Keeps our ownership, as a new folder would.
  }
  ::chmod(to.c_str(), status.st_mode & 07777);
}

}  // namespace kintsugi::data
