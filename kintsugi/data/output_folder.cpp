#include "kintsugi/data/output_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".prepare.lock";

// The files in the folder, except those that a killed prepare left behind.
std::vector<std::string> content_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (name != kLock && !name.ends_with(".part")) names.push_back(name);
  }
  if (error) throw base::UserError("prepare", "cannot read \"{}\": {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace

OutputFolder::OutputFolder(const fs::path& path, bool force) : path_(path) {
  std::error_code ignored;
  if (fs::exists(path_, ignored) && !fs::is_directory(path_, ignored)) {
    throw base::UserError("prepare", "--output \"{}\" is a file; it must be a folder, or not exist yet",
                          path_.string());
  }
  made_ = !fs::exists(path_, ignored);
  base::make_folders(path_);
  const std::vector<std::string> names = content_of(path_);
  if (!names.empty() && !force) {
    const std::string more = names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "";
    throw base::UserError("prepare",
                          "--output \"{}\" is not empty, it holds {}{}; --force replaces its token files and "
                          "leaves the rest, or name another folder",
                          path_.string(), names[0], more);
  }
  lock_.emplace(path_ / kLock, fmt::format("another prepare is writing into \"{}\"", path_.string()));
  for (const char* name : {"train", "validation"}) {  // of a killed prepare; we hold the lock
    for (const char* suffix : {".bin.part", ".idx.part", ".json.part", ".lengths.part", ".boundaries.part"}) {
      fs::remove(path_ / (std::string(name) + suffix), ignored);
    }
  }
}

OutputFolder::~OutputFolder() {
  std::error_code ignored;
  fs::remove(path_ / kLock, ignored);
  lock_.reset();
  if (made_) fs::remove(path_, ignored);  // only if it is empty
}

void OutputFolder::remove_old() const {
  for (const char* suffix : {".idx", ".json", ".bin"}) {
    for (const char* name : {"train", "validation"}) {
      std::error_code error;
      fs::remove(path_ / (std::string(name) + suffix), error);
      if (error)
        throw base::UserError("prepare", "cannot replace \"{}\": {}", (path_ / name).string(), error.message());
    }
  }
}

}  // namespace kintsugi::data
