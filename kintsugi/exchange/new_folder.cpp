#include "kintsugi/exchange/new_folder.h"

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"

namespace kintsugi::exchange {
namespace {

namespace fs = std::filesystem;

// With a name, whatever follows it.
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

NewFolder::NewFolder(std::string_view where, const fs::path& folder) : folder_(named(folder)) {
  require_empty(where, folder);
  part_ = folder_.parent_path() / (".part-" + folder_.filename().string());
  base::remove_if_possible(part_);  // what cannot be removed is said when it is written
  base::make_folders(part_);
}

NewFolder::~NewFolder() {
  base::remove_if_possible(part_);
}

void NewFolder::finish() {
  base::sync_folder(part_);
  checkpoint::move_into_place(part_, folder_);
}

}  // namespace kintsugi::exchange
