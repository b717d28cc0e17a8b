#include "kintsugi/train/compare.h"

#include <fmt/format.h>

#include <cstdio>
#include <optional>

#include "app/ranks.h"
#include "app/run_options.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/random_samples.h"

namespace kintsugi::app {
namespace {

struct Options {
  std::shared_ptr<RunOptions> run;
  int64_t steps = 3;
  std::optional<double> tolerance, loss_tolerance;  // by dtype where not given
  bool random = false;
  std::string csv;
};

// The samples of the run, or random ones; model.vocab is known after it.
std::unique_ptr<data::SampleSource> open_samples(config::Resolved& resolved, bool random) {
  const config::Settings& s = resolved.settings;
  if (!random) {
    if (s.data.train.empty())
      throw base::UserError("compare", "[data] train is not given; name a token file, or compare on --random tokens");
    return std::move(train::open_corpus(resolved).train);
  }
  if (s.model.vocab == 0)
    throw base::UserError("compare",
                          "--random opens no data, from which model.vocab would follow; --set model.vocab=N");
  return std::make_unique<train::RandomSamples>(s.train.sequence, s.model.vocab, s.train.seed);
}

void check(const Options& o) {
  if (o.steps < 1) throw base::UserError("compare", "--steps {}: a comparison takes at least 1", o.steps);
  if (o.tolerance && !(*o.tolerance > 0))
    throw base::UserError("compare", "--tolerance {}: a tolerance is more than 0", *o.tolerance);
  if (o.loss_tolerance && !(*o.loss_tolerance > 0))
    throw base::UserError("compare", "--loss-tolerance {}: a tolerance is more than 0", *o.loss_tolerance);
}

void run(const Options& o) {
  check(o);
  config::Resolved resolved = read_run(*o.run);
  const std::unique_ptr<data::SampleSource> samples = open_samples(resolved, o.random);
  const config::Settings& s = resolved.settings;
  const double tolerance = o.tolerance.value_or(train::default_tolerance(s));
  const double loss_tolerance = o.loss_tolerance.value_or(tolerance / 10);
  const train::Comparison c = train::compare(
      {.settings = s, .data = *samples, .steps = o.steps, .tolerance = tolerance, .loss_tolerance = loss_tolerance});
  if (!o.csv.empty()) base::write_file_atomically(o.csv, train::print_csv(c));
  fmt::print("{} compared with one rank: {}, {}, tolerance {:g} of gradients, {:g} of the loss\n\n{}", c.mesh,
             s.train.dtype, o.random ? "random tokens" : "the tokens of the run", tolerance, loss_tolerance,
             train::print(c));
  std::fflush(stdout);
  if (c.first()) throw base::UserError("compare", "{} differs from one rank", c.mesh);
}

}  // namespace

void add_compare(CLI::App& kintsugi) {
  CLI::App* verb = kintsugi.add_subcommand(
      "compare", "Compares a few steps with one rank: does the layout change the loss, a gradient, a weight?");
  const auto o = std::make_shared<Options>();
  o->run = add_run_options(*verb);
  const auto key = [&](const char* option, const char* name, const char* what) {
    verb->add_option_function<std::string>(
        option, [o, name](const std::string& value) { o->run->sets.push_back(fmt::format("{}={}", name, value)); },
        fmt::format("{}: {}", what, name));
  };
  key("--layers", "model.layers", "Number of layers");
  key("--sequence", "train.sequence", "Tokens per sample");
  key("--global-batch", "train.global_batch", "Samples per step");
  key("--dtype", "train.dtype", "fp64 for the sharpest comparison");
  verb->add_option("--steps", o->steps, "Steps")->capture_default_str();
  verb->add_option("--tolerance", o->tolerance, "Of gradients, relative to the norm of all; by dtype if not given");
  verb->add_option("--loss-tolerance", o->loss_tolerance,
                   "Of the loss, relative to itself; a tenth of --tolerance if not given");
  verb->add_flag("--random", o->random, "Random tokens, where there is no data");
  verb->add_option("--csv", o->csv, "A file for every difference");
  verb->callback([o] {
    require_one_process("compare");
    run(*o);
  });
}

}  // namespace kintsugi::app
