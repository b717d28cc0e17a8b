#include "app/run_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <thread>

#include "app/fold.h"
#include "app/keys_page.h"
#include "app/outputs.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/value.h"
#include "kintsugi/exchange/folder_catalog.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/train/run_files.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {

std::shared_ptr<RunOptions> add_run_options(const Verb& verb) {
  auto options = std::make_shared<RunOptions>();
  verb.text("run.toml", options->path,
            "The configuration file of the run, or a folder with config.toml or config.json");
  verb.any_texts("--set", options->sets, "Override keys of the file, e.g. --set train.steps=100 model.layers=2")
      .type_name("SECTION.KEY=VALUE");
  verb.integer(
      "--ranks",
      [options](int64_t n) {
        options->sets.insert(options->sets.begin(), fmt::format("parallel.ranks={}", n));
        options->ranks = true;
      },
      {1, range_of("parallel.ranks").max}, "Number of ranks: [parallel] ranks");
  verb.page("--keys", keys_page, "Print the keys of run.toml: all, those of a section, or one (train.steps)");
  verb.footer("Sections of run.toml; `--keys NAME` prints the keys of one:\n  " +
              fold(sections_in_words(), kColumns, 2) + "\n");
  // `--set a.b=c run.toml`: --set takes all arguments that follow, and the file is the one without "=".
  verb.when_read([options] {
    if (!options->path.empty()) return;
    const auto file =
        std::ranges::find_if(options->sets, [](const auto& set) { return set.find('=') == std::string::npos; });
    if (file == options->sets.end()) return;
    options->path = *file;
    options->sets.erase(file);
  });
  return options;
}

void refuse_run_files(std::string_view where, const RunOptions& options, const config::Settings& settings,
                      std::span<const base::Output> outputs, const std::filesystem::path& cluster) {
  if (std::ranges::all_of(outputs, [](const base::Output& o) { return o.path.empty(); })) return;
  std::vector<std::filesystem::path> files = train::files_of(settings);
  files.insert(files.begin(), options.path);
  if (!cluster.empty()) files.push_back(cluster);
  require_outputs(where, outputs, files);
}

namespace {

// Of a Hugging Face folder, the model is that of config.json, and the rest has its defaults. Of a run's folder, or a
// checkpoint's, it is the configuration that was saved there.
config::Given read_sources(const RunOptions& options) {
  namespace fs = std::filesystem;
  const config::Catalog& catalog = exchange::catalog_with_folders();
  std::error_code error;
  if (!fs::is_directory(options.path, error)) return config::read_file(options.path, catalog, options.sets);
  if (!exchange::is_hugging_face(options.path))
    return config::read_file(fs::path(options.path) / checkpoint::kConfigFile, catalog, options.sets);
  const std::string folder = (fs::path(options.path) / "").string();  // with a slash, so that it is no named size
  return config::read_text(fmt::format("[model]\nname = {}\n", config::to_toml(std::string_view(folder))), options.path,
                           catalog, options.sets);
}

}  // namespace

namespace {

config::Given read_given(const RunOptions& options) {
  config::Given given = read_sources(options);
  constexpr std::string_view kRanks = "parallel.ranks=";
  const auto sets_ranks = [&](const std::string& set) { return set.starts_with(kRanks); };
  if (options.ranks && std::ranges::count_if(options.sets, sets_ranks) == 1)
    given.origins[static_cast<size_t>(config::key_index("parallel.ranks"))].detail = "--ranks";
  return given;
}

}  // namespace

config::Resolved read_run(const RunOptions& given, RunsOn machine) {
  RunOptions options = given;
  std::error_code error;
  if (options.path.empty() && std::filesystem::exists("run.toml", error)) options.path = "run.toml";
  if (options.path.empty())
    throw base::UserError("kintsugi", "no configuration given, and no run.toml in the working directory");
  config::Resolved resolved = config::resolve(
      read_given(options), train::cores_of_all(base::usable_cores(), std::thread::hardware_concurrency()));
  const auto launched = launch::launched();
  if (machine == RunsOn::quiet) return resolved;
  if (launched && launched->rank > 0) return resolved;  // rank 0 has printed it
  for (const std::string& warning : resolved.warnings) write_warning(warning);
  if (machine == RunsOn::any) return resolved;
  for (const std::string& warning : resolved.machine_warnings) write_warning(warning);
  if (const std::string warning = compile::passed_over(resolved.settings); !warning.empty()) write_warning(warning);
  return resolved;
}

}  // namespace kintsugi::app
