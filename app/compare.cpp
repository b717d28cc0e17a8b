#include "kintsugi/train/compare.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <limits>
#include <optional>

#include "app/progress.h"
#include "app/ranks.h"
#include "app/run_options.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/comm/limits.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/random_samples.h"

namespace kintsugi::app {
namespace {

struct CompareOptions {
  std::shared_ptr<RunOptions> run;
  int64_t steps = 3;
  std::optional<double> tolerance, loss_tolerance;  // by dtype where not given
  bool random = false;
  std::string csv;
};

// The samples of the run, or random ones; model.vocab is known afterwards.
std::unique_ptr<samples::SampleSource> open_samples(config::Resolved& resolved, bool random) {
  const config::Settings& s = resolved.settings;
  if (!random) {
    if (s.data.train.empty())
      throw base::UserError("compare", "[data] train is not set; set it, or use --random tokens");
    return std::move(train::open_corpus(resolved).train);
  }
  if (const std::vector<std::string> open = config::sizes_of_data(resolved); !open.empty())
    throw base::UserError("compare", "--random reads no data, from which {} would be derived; give it with --set {}=N",
                          fmt::join(open, ", "), fmt::join(open, "=N "));
  return std::make_unique<train::RandomSamples>(s);
}

void run(const CompareOptions& o) {
  config::Resolved resolved = read_run(*o.run);
  comm::require_threads(resolved.settings.parallel.ranks);
  const std::array<base::Output, 1> outputs = {{{"--csv", o.csv}}};
  refuse_run_files("compare", *o.run, resolved.settings, outputs);
  const std::unique_ptr<samples::SampleSource> samples = open_samples(resolved, o.random);
  const config::Settings& s = resolved.settings;
  const double tolerance = o.tolerance.value_or(train::default_tolerance(s));
  const double loss_tolerance = o.loss_tolerance.value_or(tolerance / 10);
  Progress progress("comparing");
  const train::Comparison c =
      train::compare({.settings = s,
                      .data = *samples,
                      .steps = o.steps,
                      .tolerance = tolerance,
                      .loss_tolerance = loss_tolerance,
                      .progress = [&](int64_t done, int64_t all) { progress.count(done, all, "parts"); }});
  progress.finish();
  if (!o.csv.empty()) base::write_output(o.csv, train::print_csv(c));
  const std::string on = compile::on_a_device(s) ? fmt::format(" on device {}", name_of(compile::device_of(s))) : "";
  write_out("{}{} compared with one rank{}: {}{}, {}\ntolerance {:g} of gradients, {:g} of the loss\n\n{}", c.mesh, on,
            on.empty() ? "" : " of the processor", s.train.dtype, compile::takes_tf32(s) ? " with TF32" : "",
            o.random ? "random tokens" : "the tokens of the run", tolerance, loss_tolerance, train::print(c));
  require_printed();
  if (c.first()) throw base::UserError("compare", "{} differs from one rank", c.mesh);
}

}  // namespace

void add_compare(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("compare", "Compares the loss, gradients and weights of a layout with those of one rank");
  const auto o = std::make_shared<CompareOptions>();
  o->run = add_run_options(verb);
  // An option that is also a key of run.toml.
  const auto set = [o](const char* key) {
    return [o, key](const auto& value) { o->run->sets.push_back(fmt::format("{}={}", key, value)); };
  };
  const auto size = [&](const char* option, const char* key, const char* what) {
    verb.integer(option, set(key), range_of(key), fmt::format("{}: {}", what, key));
  };
  constexpr config::Number kTolerances = {0, std::numeric_limits<double>::infinity(), true};
  size("--layers", "model.layers", "Number of layers");
  size("--sequence", "train.sequence", "Tokens per sample");
  size("--global-batch", "train.global_batch", "Samples per step");
  verb.text("--dtype", set("train.dtype"), "train.dtype; fp64 gives the strictest comparison");
  verb.integer("--steps", o->steps, range_of("train.steps"), "Steps").show_default();
  verb.number("--tolerance", o->tolerance, kTolerances,
              "Tolerance of gradients, relative to the global norm; default: by dtype");
  verb.number("--loss-tolerance", o->loss_tolerance, kTolerances,
              "Relative tolerance of the loss; default: a tenth of --tolerance");
  verb.flag("--random", o->random, "Use random tokens instead of data");
  verb.text("--csv", o->csv, "A file for every difference").type_name("FILE");
  verb.run([o] {
    require_one_process("compare");
    run(*o);
  });
}

}  // namespace kintsugi::app
