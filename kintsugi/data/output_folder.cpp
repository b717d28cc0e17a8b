#include "kintsugi/data/output_folder.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/memory.h"
#include "kintsugi/data/link_tree.h"

namespace kintsugi::data {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLock = ".prepare.lock";
constexpr const char* kPartInside = ".part-files";
constexpr std::array kPairs = {"train", "validation"};
constexpr const char* kTokenizer = "tokenizer.json";

bool is_leftover(const std::string& name) {
  return name == kLock || name == kPartInside || name.ends_with(".part");
}

// The files in the folder, except leftovers of a killed prepare.
std::vector<std::string> content_of(const fs::path& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error); !error && it != fs::directory_iterator(); it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (!is_leftover(name)) names.push_back(name);
  }
  if (error) throw base::UserError("prepare", "cannot read \"{}\": {}", folder.string(), error.message());
  std::sort(names.begin(), names.end());
  return names;
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw base::UserError("prepare", "cannot remove \"{}\": {}", path.string(), error.message());
}

void remove_file(const fs::path& path) {
  std::error_code error;
  fs::remove(path, error);
  if (error) throw base::UserError("prepare", "cannot replace \"{}\": {}", path.string(), error.message());
}

bool works_in(const fs::path& folder) {
  std::error_code error;
  const fs::path relative = fs::current_path(error).lexically_relative(folder);
  return error || (!relative.empty() && *relative.begin() != "..");
}

// Tries it on two empty folders.
bool can_exchange_in(const fs::path& folder) {
  std::error_code error;
  const std::array tried = {folder / "a", folder / "b"};
  for (const fs::path& path : tried) fs::create_directory(path, error);
  const bool can = base::exchange_folders(tried[0], tried[1]);
  for (const fs::path& path : tried) fs::remove(path, error);
  return can;
}

}  // namespace

std::vector<std::string> output_names() {
  std::vector<std::string> names = {kTokenizer};
  for (const std::string pair : kPairs)
    for (const char* suffix : {".bin", ".idx", ".json"}) names.push_back(pair + suffix);
  return names;
}

OutputFolder::OutputFolder(const fs::path& path, bool force) : path_(path) {
  std::error_code error;
  if (fs::exists(path_, error) && !fs::is_directory(path_, error)) {
    throw base::UserError("prepare", "--output \"{}\" is a file; it must be a folder, or not exist yet",
                          path_.string());
  }
  made_ = base::MadeFolders(path_);
  const std::vector<std::string> names = content_of(path_);
  if (!names.empty() && !force) {
    const std::string more = names.size() > 1 ? fmt::format(" and {} more", names.size() - 1) : "";
    throw base::UserError("prepare",
                          "--output \"{}\" is not empty, it holds {}{}; --force replaces its token files and "
                          "leaves the rest, or name another folder",
                          path_.string(), names[0], more);
  }
  real_ = fs::canonical(path_, error);
  if (error) throw base::UserError("prepare", "cannot read \"{}\": {}", path_.string(), error.message());
  lock_.emplace(real_ / kLock, fmt::format("another prepare is writing into \"{}\"", path_.string()));
  remove_leftovers();
  beside_ = make_part_beside();
  if (beside_) return;
  part_ = real_ / kPartInside;
  base::make_folders(part_);
}

OutputFolder::~OutputFolder() {
  base::remove_if_possible(part_);
  base::if_memory_lasts([this] { base::remove_if_possible(real_ / kLock); });
  lock_.reset();
  part_lock_.reset();
  made_.remove_if_empty();
}

// The lock must be held.
void OutputFolder::remove_leftovers() const {
  std::error_code ignored;
  remove_tree(real_ / kPartInside);
  remove_tree(real_.parent_path() / (".part-" + real_.filename().string()));
  for (const std::string pair : kPairs)  // from a version that wrote to the folder itself
    for (const char* suffix : {".bin.part", ".idx.part", ".json.part", ".lengths.part", ".boundaries.part"})
      fs::remove(real_ / (pair + suffix), ignored);
}

bool OutputFolder::make_part_beside() {
  if (is_mount_point(real_) || works_in(real_)) return false;
  part_ = real_.parent_path() / (".part-" + real_.filename().string());
  std::error_code error;
  if (!fs::create_directory(part_, error)) return false;
  if (can_exchange_in(part_)) return true;
  fs::remove(part_, error);
  return false;
}

bool OutputFolder::exchange() {
  const std::vector<std::string> ours = output_names();
  const auto skip = [&](const std::string& name) {
    return is_leftover(name) || std::find(ours.begin(), ours.end(), name) != ours.end();
  };
  if (!link_tree(real_, part_, skip)) return false;
  copy_owner(real_, part_);
  // The lock is inside the folder, so each folder needs one.
  part_lock_.emplace(part_ / kLock, fmt::format("another prepare is writing into \"{}\"", path_.string()));
  if (!base::exchange_folders(part_, real_)) return false;
  link_tree(part_, real_, skip);  // what was added since
  return true;
}

void OutputFolder::move_files() const {
  const auto move = [&](const std::string& name) {
    std::error_code error;
    if (!fs::exists(part_ / name, error)) return remove_file(real_ / name);
    fs::rename(part_ / name, real_ / name, error);
    if (error) throw base::UserError("prepare", "cannot replace \"{}\": {}", (path_ / name).string(), error.message());
  };
  for (const std::string pair : kPairs) remove_file(real_ / (pair + ".idx"));
  base::sync_folder(real_);
  move(kTokenizer);
  for (const char* suffix : {".bin", ".json"})
    for (const std::string pair : kPairs) move(pair + suffix);
  base::sync_folder(real_);
  for (const char* index : {"validation.idx", "train.idx"}) move(index);
  base::sync_folder(real_);
}

void OutputFolder::publish() {
  if (!beside_ || !exchange()) move_files();
  remove_tree(part_);
}

}  // namespace kintsugi::data
