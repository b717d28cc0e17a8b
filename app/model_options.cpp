#include "app/model_options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <thread>

#include "app/ranks.h"
#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/processor.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/launch/process.h"
#include "kintsugi/models/models.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {

std::shared_ptr<ModelOptions> add_model_options(const Verb& verb) {
  auto options = std::make_shared<ModelOptions>();
  verb.text("model", options->model, "The folder of a checkpoint, or of a run (its newest checkpoint)");
  verb.flag("--best", options->best, "For a run folder: the checkpoint with the best validation loss");
  verb.flag("--average", options->average, "Use the moving average of the weights (train.ema_decay)");
  const auto first = [options](const char* key, int64_t n) {
    options->sets.insert(options->sets.begin(), fmt::format("parallel.{}={}", key, n));
  };
  verb.integer(
      "--ranks", [first](int64_t n) { first("ranks", n); }, {1, range_of("parallel.ranks").max},
      "Number of ranks: [parallel] ranks");
  verb.any_texts("--set", options->sets, "Keys of [parallel], e.g. --set parallel.tensor=2 parallel.pipe=2")
      .type_name("parallel.KEY=VALUE");
  verb.integer(
      "--threads", [first](int64_t n) { first("threads", n); }, {1, range_of("parallel.threads").max},
      "Threads per rank; default: the cores divided by the ranks");
  verb.word("--dtype", options->dtype, words_of("train.dtype"),
            "Dtype of weights and computation: fp32, bf16, fp16 or fp64; default: that of training")
      .type_name("DTYPE");
  // `--set a.b=c runs/first`: --set takes all arguments that follow, and the folder is the one without "=".
  verb.when_read([options, verb] {
    const auto folder =
        std::ranges::find_if(options->sets, [](const auto& set) { return set.find('=') == std::string::npos; });
    if (options->model.empty() && folder != options->sets.end()) {
      options->model = *folder;
      options->sets.erase(folder);
    }
    if (options->model.empty()) verb.require("model");
  });
  return options;
}

void find_best(const std::string& verb, ModelOptions& options) {
  if (!options.best) return;
  before_ranks_meet([&] {
    const std::optional<checkpoint::Best> best = checkpoint::read_best(options.model);
    const std::filesystem::path folder =
        best ? checkpoint::step_folder(options.model, best->step) : std::filesystem::path();
    std::error_code error;
    if (!best || !std::filesystem::is_directory(folder, error))
      throw base::UserError(
          verb,
          "--best: \"{}\" has no best checkpoint, which needs [data] validation; leave --best out to use the newest",
          options.model);
    options.model = folder.string();
  });
}

void on_ranks(const std::string& verb, const ModelOptions& options, const CheckLayout& check, const OnRank& f) {
  const int64_t cores = train::cores_of_all(base::usable_cores(), std::thread::hardware_concurrency());
  const config::Resolved layout = before_ranks_meet([&] {
    config::Resolved read = evaluate::read_layout(verb, options.sets, cores);
    check(read.settings.parallel);
    return read;
  });
  const auto launched = launch::launched();
  if (!launched || launched->rank == 0) print_warnings(layout);
  config::Settings settings = layout.settings;
  settings.train.folder.clear();  // ranks over MPI write no progress files there
  const auto worlds = before_ranks_meet([&] { return train::make_worlds(settings); });
  try {
    require_same_start(worlds, verb,
                       fmt::format("{} {}\n--set {}\n--dtype {}{}", verb, options.model, fmt::join(options.sets, " "),
                                   options.dtype, options.average ? "\n--average" : ""));
    train::require_ranks(*worlds[0], settings, verb);
    comm::run_ranks(worlds, [&](comm::World& world) { f(settings.parallel, world); });
  } catch (const std::exception& e) {
    end_all(worlds, e);
    throw;
  }
}

void print_warnings(const config::Resolved& layout) {
  for (const auto* warnings : {&layout.warnings, &layout.machine_warnings})
    for (const std::string& warning : *warnings) write_warning(warning);
  if (const std::string warning = compile::passed_over(layout.settings); !warning.empty()) write_warning(warning);
}

void print_notes(const std::vector<std::string>& notes, Progress& progress) {
  for (const std::string& note : notes) progress.print("note: " + note);
}

void warn_of_repeated(const std::vector<std::string>& axes, const std::string& what, Progress& progress) {
  for (const std::string& axis : axes)
    progress.print(
        fmt::format("warning: mesh axis \"{}\" splits nothing of {}: its ranks repeat the work of one", axis, what));
}

void require_tokenizer(const std::string& verb, const evaluate::CheckpointModel& model) {
  const config::Model& m = model.settings().model;
  if (models::reads_images(m))
    throw base::UserError(verb, "{} is a model of images, {}, and has no text; use kintsugi classify or predict",
                          base::in_quotes(model.folder().string()), m.family);
  if (!model.tokenizer())
    throw base::UserError(verb, "\"{}\" has no tokenizer, which is needed to decode text", model.folder().string());
}

void note_positions(int64_t positions, int64_t most, bool named, Progress& progress) {
  if (!named && positions < most)
    progress.print(fmt::format("note: texts have {} of the model's {} positions; --context sets another number",
                               base::group_digits(positions), base::group_digits(most)));
}

}  // namespace kintsugi::app
