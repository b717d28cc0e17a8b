#include "app/show_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "app/model_in_words.h"
#include "app/print_entry.h"
#include "app/shell_word.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/exchange/folder_catalog.h"

namespace kintsugi::app {
namespace {

std::string data_in_words(const config::Data& d) {
  if (d.train.empty()) return "none";
  std::string text = base::one_line(d.train[0].path, 60);
  if (d.train.size() > 1) text += fmt::format(" and {} more", d.train.size() - 1);
  if (d.validation.empty()) return text + ", no validation";
  text += ", validation " + base::one_line(d.validation[0].path, 60);
  if (d.validation.size() > 1) text += fmt::format(" and {} more", d.validation.size() - 1);
  return text;
}

std::string progress_in_words(const std::filesystem::path& folder) {
  const std::vector<checkpoint::SavedStep> saved = checkpoint::list(folder);
  if (saved.empty()) return "no checkpoint yet";
  return fmt::format("{} checkpoint{}, the newest of step {}", saved.size(), saved.size() == 1 ? "" : "s",
                     base::group_digits(saved.back().step));
}

}  // namespace

void show_run(const std::filesystem::path& path) {
  const config::Given given = config::read_file(path, exchange::catalog_with_folders());
  const auto count = std::ranges::count_if(given.origins, [](const config::Origin& o) { return o.given(); });
  const config::Settings& s = given.settings;
  const std::string file = shell_word(path.string());
  print_entry("run", fmt::format("{}, the configuration of a run: {} key{} given", path.string(), count,
                                 count == 1 ? " is" : "s are"));
  print_entry("model", model_in_words(s.model));
  print_entry("data", data_in_words(s.data));
  print_entry("steps", base::group_digits(s.train.steps));
  print_entry("folder", fmt::format("{}: {}", s.train.folder, progress_in_words(s.train.folder)));
  print_entry("see", fmt::format("`kintsugi check {0} --all` prints every key, `kintsugi train {0}` trains", file));
}

}  // namespace kintsugi::app
