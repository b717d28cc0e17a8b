#include "kintsugi/train/run_files.h"

#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/report/event_file.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/step_traces.h"
#include "kintsugi/train/stragglers.h"

namespace kintsugi::train {
namespace {

namespace fs = std::filesystem;

void add_token_file(const fs::path& path, std::vector<fs::path>& files) {
  const fs::path prefix = data::token_prefix(path);
  for (const char* suffix : {".bin", ".idx", ".json"}) files.push_back(data::with_suffix(prefix, suffix));
  files.push_back(prefix.parent_path() / "tokenizer.json");
}

void add_contents(const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code error;
  for (fs::directory_iterator i(folder, error), end; !error && i != end; i.increment(error)) files.push_back(i->path());
}

// A run's folder may also hold files of the user.
void add_run(const fs::path& folder, std::vector<fs::path>& files) {
  for (const char* name : {"config.toml", "metrics.jsonl", "best.json", kProfileFile, kStragglerFile, kEndFile, ".lock"})
    files.push_back(folder / name);
  for (const fs::path& events : report::event_files(folder)) files.push_back(events);
  for (const checkpoint::SavedStep& saved : checkpoint::list(folder)) add_contents(saved.folder, files);
}

}  // namespace

std::vector<fs::path> files_of(const config::Settings& settings) {
  std::vector<fs::path> files;
  for (const config::DataSource& source : settings.data.train) add_token_file(source.path, files);
  for (const config::ValidationFile& file : settings.data.validation) add_token_file(file.path, files);
  if (!settings.parallel.cluster.empty()) files.push_back(settings.parallel.cluster);
  add_run(settings.train.folder, files);
  if (const fs::path from = settings.train.init_from; !from.empty()) {
    files.push_back(from);
    add_run(from, files);
    std::error_code error;
    if (fs::exists(from / checkpoint::kIndexFile, error) || !fs::exists(from / "config.toml", error))
      add_contents(from, files);  // a checkpoint, ours or another program's
  }
  return files;
}

}  // namespace kintsugi::train
