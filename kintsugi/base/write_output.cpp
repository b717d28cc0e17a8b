#include "kintsugi/base/write_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>

#include "kintsugi/base/error.h"

namespace kintsugi::base {
namespace {

namespace fs = std::filesystem;
using Status = struct stat;

[[noreturn]] void fail(const fs::path& path, int reason) {
  throw UserError("file", "cannot write \"{}\": {}", path.string(), std::strerror(reason));
}

bool same(const Status& a, const Status& b) {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

// Returns 0 or errno.
int write_all(int descriptor, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(descriptor, content.data(), content.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return errno;
    content.remove_prefix(static_cast<size_t>(n));
  }
  return 0;
}

// The descriptor of standard output or error if it refers to this file, else -1.
int stream_at(const Status& status) {
  for (const int descriptor : {STDOUT_FILENO, STDERR_FILENO}) {
    Status stream = {};
    if (::fstat(descriptor, &stream) == 0 && same(stream, status)) return descriptor;
  }
  return -1;
}

void write_directly(const fs::path& path, std::string_view content) {
  const int descriptor = ::open(path.c_str(), O_WRONLY | O_CLOEXEC);
  if (descriptor < 0) fail(path, errno);
  int reason = write_all(descriptor, content);
  if (::close(descriptor) != 0 && reason == 0) reason = errno;
  if (reason != 0) fail(path, reason);
}

// Whether a part file's writer may still be between creating and locking it: a process of this machine has the number,
// and the file is new. Numbers are reused, in containers by nearly every run.
bool may_be_written(pid_t process, const Status& part) {
  constexpr time_t kSeconds = 60;
  if (process == ::getpid() || (::kill(process, 0) != 0 && errno == ESRCH)) return false;
  return std::abs(::time(nullptr) - part.st_mtime) < kSeconds;
}

// Removes the part files of killed processes: no process on any machine that shares the file system holds the lock.
void remove_parts_of_others(const fs::path& folder) {
  constexpr std::string_view kBegin = ".kintsugi-", kEnd = ".part";
  std::error_code error;
  for (fs::directory_iterator it(folder.empty() ? "." : folder, error); !error && it != fs::directory_iterator();
       it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!name.starts_with(kBegin) || !name.ends_with(kEnd)) continue;
    pid_t process = 0;
    const auto [end, bad] = std::from_chars(name.data() + kBegin.size(), name.data() + name.size(), process);
    if (bad != std::errc() || *end != '-' || process <= 0) continue;
    const int part = ::open(it->path().c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    if (part < 0) continue;
    Status status = {};
    const bool old = ::fstat(part, &status) == 0 && S_ISREG(status.st_mode) && !may_be_written(process, status);
    if (old && ::flock(part, LOCK_EX | LOCK_NB) == 0) ::unlink(it->path().c_str());
    ::close(part);
  }
}

// `old` is null if the file does not exist.
void replace(const fs::path& path, const fs::path& target, const Status* old, std::string_view content) {
  constexpr int kMostNames = 100;  // killed processes may have left some
  remove_parts_of_others(target.parent_path());
  fs::path part;
  int descriptor = -1;
  for (int i = 0; i < kMostNames && descriptor < 0; ++i) {
    part = target.parent_path() / fmt::format(".kintsugi-{}-{}.part", ::getpid(), i);
    descriptor = ::open(part.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (descriptor < 0 && errno != EEXIST) break;
  }
  if (descriptor < 0) fail(path, errno);
  ::flock(descriptor, LOCK_EX | LOCK_NB);
  int reason = write_all(descriptor, content);
  if (reason == 0 && old && ::fchmod(descriptor, old->st_mode & 07777) != 0) reason = errno;
  if (reason == 0 && ::fsync(descriptor) != 0 && errno != EINVAL) reason = errno;
  if (::close(descriptor) != 0 && reason == 0) reason = errno;
  if (reason == 0 && ::rename(part.c_str(), target.c_str()) != 0) reason = errno;
  if (reason == 0) return;
  ::unlink(part.c_str());
  fail(path, reason);
}

// Regular files only: a device or FIFO may be named twice.
bool is_one_file(const fs::path& a, const fs::path& b) {
  Status of_a = {}, of_b = {};
  const bool a_exists = ::stat(a.c_str(), &of_a) == 0, b_exists = ::stat(b.c_str(), &of_b) == 0;
  if (a_exists != b_exists) return false;
  return a_exists ? S_ISREG(of_a.st_mode) && same(of_a, of_b) : a.lexically_normal() == b.lexically_normal();
}

}  // namespace

fs::path target_of(const fs::path& path) {
  constexpr int kMostLinks = 40;
  fs::path target = path;
  std::error_code error;
  for (int i = 0; i < kMostLinks; ++i) {
    if (!fs::is_symlink(fs::symlink_status(target, error))) return target;
    const fs::path next = fs::read_symlink(target, error);
    if (error) fail(path, error.value());
    target = target.parent_path() / next;  // just `next` if it is absolute
  }
  fail(path, ELOOP);
}

void refuse_inputs(std::string_view where, std::span<const Output> outputs, std::span<const fs::path> inputs) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const auto& [option, path] = outputs[i];
    if (path.empty()) continue;
    for (size_t j = 0; j < i; ++j)
      if (is_one_file(path, outputs[j].path))
        throw UserError(where, "{} and {} are one file, \"{}\"; name two", outputs[j].option, option, path.string());
    std::error_code ignored;
    for (const fs::path& input : inputs)
      if (fs::exists(input, ignored) && is_one_file(path, input))
        throw UserError(where, "{} \"{}\" is {}a file of this run; name another", option, path.string(),
                        input == path ? "" : fmt::format("\"{}\", ", input.string()));
  }
}

void write_output(const fs::path& path, std::string_view content) {
  Status status = {};
  const bool exists = ::stat(path.c_str(), &status) == 0;
  if (!exists && errno != ENOENT) fail(path, errno);
  if (const int descriptor = exists ? stream_at(status) : -1; descriptor >= 0) {
    if (std::fflush(stdout) != 0) fail(path, errno);
    if (const int reason = write_all(descriptor, content); reason != 0) fail(path, reason);
  } else if (exists && !S_ISREG(status.st_mode)) {
    write_directly(path, content);
  } else {
    replace(path, target_of(path), exists ? &status : nullptr, content);
  }
}

}  // namespace kintsugi::base
