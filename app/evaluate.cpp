#include <fmt/format.h>

#include <cmath>
#include <memory>
#include <tuple>

#include "app/ensemble.h"
#include "app/evaluate_ids.h"
#include "app/evaluate_tasks.h"
#include "app/model_options.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/field_error.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/evaluate/perplexity.h"
#include "kintsugi/images/image_set.h"
#include "kintsugi/models/models.h"
#include "kintsugi/samples/samples.h"

namespace kintsugi::app {
namespace {

struct EvaluateOptions {
  std::shared_ptr<ModelOptions> model;
  std::string data, labels;
  int64_t sequence = 0, batch = 8;
  EvaluateIds given;  // ids instead of data
  std::string task, shots_data;
  int64_t shots = 0;
  bool begin = false, allow_not_finite = false;
  std::vector<std::string> with;  // further members of an ensemble
  std::vector<std::string> also;  // further models that are evaluated
};

struct Source {
  std::string domain;  // empty: it has no name
  std::string path, fingerprint;
  std::unique_ptr<samples::FiniteSource> sampler;
  int64_t samples = 0;
};

void open_tokens(const evaluate::CheckpointModel& model, Source& source, samples::DataFile& file) {
  const config::Settings& s = model.settings();
  file.tokens = std::make_shared<const data::TokenFile>(source.path);
  const data::TokenSummary summary = data::summarize(*file.tokens, static_cast<int>(s.parallel.threads), stderr);
  const std::string& tokenizer = model.tokenizer_json();
  if (!tokenizer.empty() && !summary.tokenizer.empty() && summary.tokenizer != data::tokenizer_fingerprint(tokenizer))
    throw base::UserError(
        "evaluate",
        "\"{}\" was prepared with a different tokenizer than \"{}\"; prepare it with --tokenizer {}/tokenizer.json",
        source.path, model.folder().string(), model.folder().string());
  data::require_vocabulary(*file.tokens, summary, s.model.vocab);
  source.fingerprint = data::checked_fingerprint(*file.tokens, summary);
}

// The model's settings, with the ids of its tokenizer where they are not known: of a Hugging Face folder.
config::Settings settings_of(const evaluate::CheckpointModel& model) {
  config::Settings s = model.settings();
  if (model.tokenizer_json().empty() || config::objective(s.model) == config::Objective::next) return s;
  const config::TokenizerIds ids = samples::ids_of(*text::parse_tokenizer(model.tokenizer_json(), "tokenizer.json"));
  if (s.data.mask_token < 0) s.data.mask_token = ids.mask;
  if (s.data.first_token < 0) s.data.first_token = ids.first;
  if (s.data.separator_token < 0) s.data.separator_token = ids.separator;
  return s;
}

// UserError unless the images are of the model's size.
void require_shape(const images::ImageSet& set, const config::Model& m) {
  const std::string depth = m.image_depth > 0 ? fmt::format("{} x ", m.image_depth) : "",
                    size = fmt::format("{} x {}{} x {} of {}", m.image_channels, depth, m.image_height, m.image_width,
                                       m.image_dtype);
  if (set.size_text() != size)
    throw base::UserError("evaluate", "\"{}\" has images {}; the model reads {}", set.files()[0].path().string(),
                          set.size_text(), size);
}

Source open_source(const EvaluateOptions& o, const evaluate::CheckpointModel& model, const config::Settings& s,
                   const config::ValidationFile& from, int64_t sequence) {
  Source source = {.domain = from.domain, .path = from.path, .fingerprint = {}, .sampler = nullptr, .samples = 0};
  const bool pictures = models::reads_images(s.model), numbers = !pictures && !models::reads_tokens(s.model);
  const std::string& labels = o.data.empty() && o.labels.empty() ? s.data.validation_labels : o.labels;
  samples::DataFile file;
  if (pictures) {
    file.images = std::make_shared<const images::ImageSet>(std::vector<std::filesystem::path>{source.path}, labels,
                                                           images::Use::evaluate, samples::label_kind(s.model));
    require_shape(*file.images, s.model);
    for (const images::ImageFile& f : file.images->files()) source.fingerprint += f.fingerprint();
  } else if (!numbers) {
    open_tokens(model, source, file);
  }
  if (numbers || (!pictures && samples::has_labels(s.model))) {
    if (!numbers && labels.empty())
      throw base::UserError("evaluate",
                            "the model predicts a label per document; name the CSV file of labels with --labels");
    file.numbers = std::make_shared<const data::NumberTable>(numbers ? source.path : labels);
    source.fingerprint += file.numbers->fingerprint();
  }
  source.sampler = samples::evaluation_samples(s, file, sequence);
  source.samples = static_cast<int64_t>(source.sampler->num_samples());
  return source;
}

struct Sources {
  std::vector<Source> list;
  int64_t sequence = 0, samples = 0, most = 0;  // of all together, and of the largest

  // A line for each, the same on all ranks.
  std::string lines() const {
    std::string text;
    for (const Source& s : list)
      text += fmt::format("{}, {} samples, fingerprint {}\n", s.path, s.samples, s.fingerprint);
    return text;
  }
};

// That of --data, or the run's validation files.
Sources open_sources(const EvaluateOptions& o, const evaluate::CheckpointModel& model) {
  const config::Settings s = settings_of(model);
  Sources sources = {.list = {}, .sequence = o.sequence > 0 ? o.sequence : s.train.sequence};
  if (o.sequence > 0 && !models::reads_tokens(s.model))
    throw base::UserError("evaluate", "--sequence is for models of tokens, and this is a {}", s.model.family);
  if (sources.sequence > s.model.context)
    throw base::UserError("evaluate", "--sequence {} exceeds the model's {} positions", sources.sequence,
                          s.model.context);
  std::vector<config::ValidationFile> files = s.data.validation;
  if (!o.data.empty()) files = {{.domain = {}, .path = o.data}};
  if (files.empty()) throw base::UserError("evaluate", "the run has no validation data; name it with --data FILE");
  for (const config::ValidationFile& file : files) {
    const Source& source = sources.list.emplace_back(open_source(o, model, s, file, sources.sequence));
    sources.samples += source.samples;
    sources.most = std::max(sources.most, source.samples);
  }
  return sources;
}

// One of what the loss is a mean over.
std::string_view counted_by(const config::Settings& s) {
  switch (config::objective(s.model)) {
    case config::Objective::next:
      return "token";
    case config::Objective::masked:
    case config::Objective::masked_next:
      return "masked token";
    case config::Objective::classes:
      return "sample";
    case config::Objective::numbers:
      return "number";
    case config::Objective::pixels:
      return "pixel";
    case config::Objective::fields:
      return config::field_loss(s.train) == config::FieldLoss::mse ? "number" : "sample";
  }
  throw base::InternalError("evaluate", "an unknown objective");
}

// UserError for data without a label, and for a loss that is no number. Call on all ranks.
void require_loss(const EvaluateOptions& o, evaluate::CheckpointModel& model, const run::Executor& executor,
                  const Source& source, const run::LossSum& loss) {
  const config::Settings& s = model.settings();
  if (loss.count == 0)
    throw base::UserError("evaluate", "{}: none of its {} samples has a label ({}), so that there is no loss",
                          base::in_quotes(source.path), base::group_digits(source.samples), counted_by(s));
  if (o.allow_not_finite) return;
  const std::string over = "over " + base::in_quotes(source.path);
  if (!std::isfinite(loss.sum))
    evaluate::fail_not_finite("evaluate", fmt::format("losses {} (--allow-not-finite prints their mean)", over),
                              executor, &model.all());
  if (config::objective(s.model) == config::Objective::next)
    std::ignore = evaluate::perplexity("evaluate", over + " (--allow-not-finite prints it)", loss.mean());
}

// Of each domain, if they have names, and of all together.
void print(const evaluate::CheckpointModel& model, const std::vector<Source>& sources,
           const std::vector<run::LossSum>& losses) {
  const config::Model& m = model.settings().model;
  const auto count = [&](const run::LossSum& loss) {
    return base::counted(static_cast<int64_t>(loss.count), counted_by(model.settings()));
  };
  const bool likely = config::objective(m) == config::Objective::next;
  write_out("checkpoint {}\n", model.folder());
  run::LossSum all;
  for (size_t i = 0; i < sources.size(); ++i) {
    all.add(losses[i]);
    if (sources[i].domain.empty()) continue;
    write_out("domain     {}: loss {}, {}{}, {}\n", sources[i].domain, base::format_loss(losses[i].mean(), 6),
              likely ? fmt::format("perplexity {}, ", base::format_fixed(std::exp(losses[i].mean()), 4)) : "",
              sources[i].path, count(losses[i]));
  }
  const std::string data = sources.size() == 1 ? sources[0].path : fmt::format("{} domains", sources.size());
  write_out("data       {}, {}\nloss       {}\n", data, count(all), base::format_loss(all.mean(), 6));
  if (likely) write_out("perplexity {}\n", base::format_fixed(std::exp(all.mean()), 4));
  if (!all.errors.empty()) {
    const evaluate::FieldError error = evaluate::field_error(model.settings(), all);
    write_out("RMSE       {}\n", base::format_loss(error.all, 6));
    for (size_t c = 0; error.channels.size() > 1 && c < error.channels.size(); ++c)
      write_out("{:<11}{}\n", fmt::format("channel {}", c), base::format_loss(error.channels[c], 6));
  }
  if (all.top1) write_out("top-1      {}%\n", base::format_fixed(100 * *all.top1 / all.count, 2));
  if (all.top5 && m.outputs > 5) write_out("top-5      {}%\n", base::format_fixed(100 * *all.top5 / all.count, 2));
}

void evaluate_on_rank(const EvaluateOptions& o, const config::Parallel& layout, comm::World& world,
                      Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average, o.allow_not_finite);
  Sources sources;
  int64_t batch = 0;
  models::Graphs graphs;
  comm::together(model.all(), [&] {
    sources = open_sources(o, model);
    batch = evaluate::even_batch(o.batch, sources.most, config::data_ranks(layout));
    graphs = models::build_evaluation(model.settings(), batch, sources.sequence);
  });
  comm::require_same(model.all(), "evaluate", "data file", sources.lines());
  if (model.leads()) progress.tell("loading the weights");
  const auto executor = model.load(graphs);
  if (model.leads()) {
    print_notes(model.notes(), progress);
    warn_of_repeated(model.repeated(), "a batch", progress);
  }
  std::vector<run::LossSum> losses;
  int64_t before = 0;
  for (const Source& source : sources.list) {
    const auto goes_on = [&](int64_t done) {
      if (model.leads()) progress.count(before + done, sources.samples, "samples");
      return true;
    };
    losses.push_back(
        *evaluate::mean_loss_while(*executor, *source.sampler, {.samples = source.samples, .batch = batch}, goes_on));
    before += source.samples;
  }
  progress.finish();
  for (size_t i = 0; i < losses.size(); ++i) require_loss(o, model, *executor, sources.list[i], losses[i]);
  if (model.leads()) print(model, sources.list, losses);
}

// The loss of the mean of the members' probabilities.
void evaluate_ensemble(const EvaluateOptions& o, const config::Parallel& layout, comm::World& world,
                       Progress& progress) {
  Ensemble ensemble(o.model->model, o.with, layout, world, o.model->dtype);
  const evaluate::CheckpointModel& model = ensemble.first();
  if (config::objective(model.settings().model) != config::Objective::next)
    throw base::UserError("evaluate", "--with needs models that predict the next token");
  const Sources sources = open_sources(o, model);
  progress.tell("loading the weights");
  ensemble.load(sources.sequence);
  EnsembleLoss all;
  int64_t before = 0;
  for (const Source& source : sources.list) {
    const EnsembleLoss loss = ensemble_loss(ensemble, *source.sampler, source.samples, [&](int64_t done) {
      progress.count(before + done, sources.samples, "samples");
    });
    all.sum += loss.sum;
    all.divergence += loss.divergence;
    all.count += loss.count;
    all.agree += loss.agree;
    before += source.samples;
  }
  progress.finish();
  const auto count = static_cast<double>(std::max<int64_t>(1, all.count));
  const double loss = all.sum / count;
  if (!std::isfinite(loss))
    throw base::UserError("evaluate",
                          "the losses of one of the models of --with, or of the first, are NaN or infinity");
  write_out("ensemble   {} models: {}", ensemble.size(), model.folder());
  for (const std::string& path : o.with) write_out(", {}", path);
  write_out("\ndata       {}, {}\nloss       {}\nperplexity {}\n",
            sources.list.size() == 1 ? sources.list[0].path : fmt::format("{} domains", sources.list.size()),
            base::counted(all.count, "token"), base::format_loss(loss, 6), base::format_fixed(std::exp(loss), 4));
  write_out("disagree   {} nats per token, {}% of tokens with different most likely ones\n",
            base::format_loss(all.divergence / count, 6),
            base::format_fixed(100 * (1 - static_cast<double>(all.agree) / count), 2));
}

}  // namespace

void add_evaluate(Command& kintsugi) {
  const Verb verb =
      kintsugi.add_verb("evaluate", "Computes the loss and perplexity of a model, or runs an evaluation task");
  const auto o = std::make_shared<EvaluateOptions>();
  o->model = add_model_options(verb);
  verb.text("--data", o->data,
            "A token file, images or a CSV file; default: the run's validation split. With --task: the task's file or "
            "folder");
  verb.text("--labels", o->labels, "The labels of documents or images, if they are in a separate file");
  verb.texts("--with", o->with,
             "A further model of an ensemble, whose probabilities are averaged with the first's (repeatable)");
  verb.integer("--sequence", o->sequence, range_of("train.sequence"), "Tokens per sample; default: that of training");
  verb.integer("--batch", o->batch, range_of("train.global_batch"), "Batch size, over all ranks").show_default();
  verb.text("--ids", o->given.ids, "A text file of token ids, one sample per line, instead of a token file");
  verb.text("--dump", o->given.dump,
            "With --ids: write loss, logits and gradients to this safetensors file; with --task: write the "
            "log-likelihoods of each document as JSON lines");
  verb.number("--balance-weight", o->given.balance_weight, {0, 1e6},
              "With --ids: add the balance loss of experts to the gradients, with this weight");
  verb.text("--task", o->task, "An evaluation task or group, e.g. arc_easy or core, or a task file (docs/tasks.md)");
  verb.texts("--also", o->also, "With --task: a further model, in another column of the table (repeatable)");
  verb.flag("--allow-not-finite", o->allow_not_finite,
            "Print a loss that is NaN or infinity instead of ending with an error");
  verb.flag("--begin", o->begin, "With --task: prepend the tokenizer's first special token (<s>) to each request");
  verb.integer("--shots", o->shots, {0, 1000}, "With --task: number of few-shot examples");
  verb.text("--shots-data", o->shots_data, "With --shots: the file or folder of the examples; the first ones are used");
  verb.run([o] {
    find_best("evaluate", *o->model);
    o->given.model = o->model;
    o->given.allow_not_finite = o->allow_not_finite;
    if (!o->with.empty() && (!o->given.ids.empty() || !o->task.empty()))
      throw base::UserError("evaluate", "--with evaluates token files, without --ids and --task");
    if (!o->given.ids.empty() && !o->task.empty())
      throw base::UserError("evaluate", "--ids and --task exclude each other");
    if (!o->given.ids.empty()) return evaluate_ids(o->given);
    if (!o->task.empty())
      return evaluate_tasks({.model = o->model,
                             .also = o->also,
                             .task = o->task,
                             .data = o->data,
                             .shots_data = o->shots_data,
                             .shots = o->shots,
                             .dump = o->given.dump,
                             .sequence = o->sequence,
                             .batch = o->batch,
                             .begin = o->begin});
    if (!o->given.dump.empty()) throw base::UserError("evaluate", "--dump needs --ids FILE or --task TASK");
    if (o->given.balance_weight > 0.0) throw base::UserError("evaluate", "--balance-weight needs --ids FILE");
    if (o->shots > 0 || !o->shots_data.empty()) throw base::UserError("evaluate", "--shots needs --task");
    if (o->begin) throw base::UserError("evaluate", "--begin needs --task");
    if (!o->also.empty()) throw base::UserError("evaluate", "--also needs --task");
    Progress progress("evaluating");
    on_ranks(
        "evaluate", *o->model, [](const config::Parallel&) {},
        [&](const config::Parallel& layout, comm::World& world) {
          o->with.empty() ? evaluate_on_rank(*o, layout, world, progress)
                          : evaluate_ensemble(*o, layout, world, progress);
        });
  });
}

}  // namespace kintsugi::app
