#include "kintsugi/checkpoint/folder.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPart = ".part-";
constexpr std::string_view kStep = "step_";
constexpr std::string_view kBest = "best.json";

std::string step_name(int64_t step) {
  return fmt::format("{}{:08}", kStep, step);
}

std::optional<int64_t> step_from(const std::string& name) {
  if (!name.starts_with(kStep)) return std::nullopt;
  int64_t step = 0;
  const char* end = name.data() + name.size();
  const auto [rest, error] = std::from_chars(name.data() + kStep.size(), end, step);
  if (error != std::errc() || rest != end || step_name(step) != name) return std::nullopt;
  return step;
}

void remove_tree(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path, error);
  if (error) throw base::UserError(kWhere, "cannot remove {}: {}", base::in_quotes(path.string()), error.message());
}

// Failure to remove something must not prevent a save.
template <typename F>
void warn_if_it_stays(F&& remove) {
  try {
    remove();
  } catch (const base::UserError& error) {
    spdlog::warn("{}", error.what());
  }
}

std::vector<fs::path> entries(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) paths.push_back(i->path());
  if (error && error != std::errc::no_such_file_or_directory)
    throw base::UserError(kWhere, "cannot list {}: {}", base::in_quotes(folder.string()), error.message());
  return paths;
}

// Renames it first, so that a kill during removal leaves a leftover and not a damaged checkpoint.
void remove_checkpoint(const SavedStep& saved) {
  const fs::path part = saved.folder.parent_path() / fmt::format("{}remove-{}", kPart, step_name(saved.step));
  remove_tree(part);
  base::rename_durably(saved.folder, part);
  remove_tree(part);
}

bool opens(const SavedStep& saved) {
  try {
    CheckpointReader reader(saved.folder);
    return true;
  } catch (const base::UserError&) {
    return false;
  }
}

}  // namespace

fs::path step_folder(const fs::path& run_folder, int64_t step) {
  return run_folder / step_name(step);
}

fs::path part_folder(const fs::path& run_folder, int64_t step) {
  return run_folder / (std::string(kPart) + step_name(step));
}

std::vector<SavedStep> list(const fs::path& run_folder) {
  std::vector<SavedStep> saved;
  for (const fs::path& path : entries(run_folder)) {
    std::error_code error;
    const auto step = step_from(path.filename().string());
    if (step && fs::is_directory(path, error)) saved.push_back({*step, path});
  }
  std::sort(saved.begin(), saved.end(), [](const SavedStep& a, const SavedStep& b) { return a.step < b.step; });
  return saved;
}

std::optional<SavedStep> newest_whole(const fs::path& run_folder) {
  std::vector<SavedStep> saved = list(run_folder);
  for (; !saved.empty(); saved.pop_back()) {
    try {
      CheckpointReader(saved.back().folder).verify();
      return saved.back();
    } catch (const base::UserError& error) {
      spdlog::warn("step {} is skipped: {}", saved.back().step, error.what());
    }
  }
  return std::nullopt;
}

void write_best(const fs::path& run_folder, const Best& best) {
  base::require(std::isfinite(best.validation_loss), kWhere, "the best loss is {}", best.validation_loss);
  base::JsonWriter json;
  json.object([&] { json.key("step").value(best.step).key("validation_loss").value(best.validation_loss); });
  base::write_file_atomically(run_folder / kBest, json.text() + "\n");
}

std::optional<Best> read_best(const fs::path& run_folder) {
  const fs::path path = run_folder / kBest;
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  const auto json = base::Json::parse(kWhere, path.string(), base::read_file(path));
  return Best{json.at("step").whole(), json.at("validation_loss").number()};
}

void remove_best(const fs::path& run_folder) {
  std::error_code ignored;  // an existing file is overwritten
  fs::remove(run_folder / kBest, ignored);
}

void prune(const fs::path& run_folder, int64_t keep) {
  base::require(keep >= 1, kWhere, "{} checkpoints are to be kept", keep);
  remove_leftovers(run_folder);
  const std::optional<Best> best = read_best(run_folder);
  std::vector<SavedStep> saved = list(run_folder);
  std::erase_if(saved, [](const SavedStep& s) { return !opens(s); });
  const auto excess = static_cast<int64_t>(saved.size()) - keep;
  for (int64_t i = 0; i < excess; ++i) {
    const SavedStep& old = saved[static_cast<size_t>(i)];
    if (!best || best->step != old.step) warn_if_it_stays([&] { remove_checkpoint(old); });
  }
}

void remove_leftovers(const fs::path& run_folder) {
  for (const fs::path& path : entries(run_folder))
    if (path.filename().string().starts_with(kPart)) warn_if_it_stays([&] { remove_tree(path); });
}

void move_into_place(const fs::path& from, const fs::path& to) {
  std::error_code error;
  if (!fs::exists(to, error)) return base::rename_durably(from, to);
  if (base::exchange_folders(from, to)) return remove_tree(from);
  const fs::path old = to.parent_path() / fmt::format("{}old-{}", kPart, to.filename().string());
  remove_tree(old);
  base::rename_durably(to, old);
  base::rename_durably(from, to);
  remove_tree(old);
}

}  // namespace kintsugi::checkpoint
