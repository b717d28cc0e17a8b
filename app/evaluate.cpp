#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "app/terminal.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/data/evaluation_sampler.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/perplexity.h"

namespace kintsugi::app {
namespace {

struct Options {
  std::string model, data;
  int64_t sequence = 0, batch = 8;
  int threads = 0;
};

void run(const Options& o) {
  evaluate::CheckpointModel model(o.model, o.threads);
  const config::Settings& s = model.config.settings;
  const int64_t sequence = o.sequence > 0 ? o.sequence : s.train.sequence;
  if (sequence > s.model.context)
    throw base::UserError("evaluate", "--sequence {} is longer than the model's {} positions", sequence,
                          s.model.context);
  const std::string path = o.data.empty() ? s.data.validation : o.data;
  if (path.empty()) throw base::UserError("evaluate", "the run has no validation data; name a token file with --data");
  const auto file = std::make_shared<const data::TokenFile>(path);
  const data::TokenSummary summary = data::summarize(*file, model.team.size(), stderr);
  const std::string tokenizer = model.reader.tokenizer();
  if (!tokenizer.empty() && !summary.tokenizer.empty() && summary.tokenizer != data::tokenizer_fingerprint(tokenizer))
    throw base::UserError(
        "evaluate",
        "\"{}\" was made with another tokenizer than that of \"{}\"; prepare it with --tokenizer {}/tokenizer.json",
        path, model.reader.folder().string(), model.reader.folder().string());
  data::require_vocabulary(*file, summary, s.model.vocab);
  const data::EvaluationSampler source(
      file, {.sequence = sequence, .reset_at_document = s.data.reset_at_document, .vocab_size = s.model.vocab});
  const auto samples = static_cast<int64_t>(source.num_samples());
  const int64_t batch = std::min(o.batch, samples);
  const auto executor = model.load(models::build_evaluation(s, batch, sequence));
  ProgressLine progress;
  const run::LossSum loss = evaluate::mean_loss(*executor, source, samples, [&](int64_t done) {
    progress.update(fmt::format("{} of {} samples", done, samples));
  });
  progress.finish();
  fmt::print("checkpoint {}\ndata       {}, {} tokens\nloss       {:.6f}\nperplexity {:.4f}\n",
             model.reader.folder().string(), path, base::group_digits(static_cast<int64_t>(loss.count)), loss.mean(),
             std::exp(loss.mean()));
}

}  // namespace

void add_evaluate(CLI::App& kintsugi) {
  CLI::App* verb = kintsugi.add_subcommand("evaluate", "The loss and perplexity of a checkpoint over a token file");
  const auto o = std::make_shared<Options>();
  verb->add_option("model", o->model, "A checkpoint's folder, or a run's (its newest checkpoint)")->required();
  verb->add_option("--data", o->data, "A token file; the run's validation split if not given");
  verb->add_option("--sequence", o->sequence, "Tokens per sample; that of training if not given")
      ->check(CLI::PositiveNumber);
  verb->add_option("--batch", o->batch, "Samples at a time")->check(CLI::PositiveNumber)->capture_default_str();
  verb->add_option("--threads", o->threads, "Threads; all cores if not given")->check(CLI::PositiveNumber);
  verb->callback([o] { run(*o); });
}

}  // namespace kintsugi::app
