#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>

#include "app/class_table.h"
#include "app/model_options.h"
#include "app/npy_file.h"
#include "app/outputs.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/evaluate/image_outputs.h"
#include "kintsugi/images/image_set.h"
#include "kintsugi/images/thumbnail.h"
#include "kintsugi/models/models.h"
#include "kintsugi/report/predictions.h"
#include "kintsugi/samples/image_samples.h"
#include "kintsugi/text/base64.h"

namespace kintsugi::app {
namespace {

struct ClassifyOptions {
  std::shared_ptr<ModelOptions> model;
  std::vector<std::string> files;
  std::string labels, output;
  int64_t top = 3, show = 10, batch = 32;
  bool confusion = false, report = false;
};

constexpr int64_t kReported = 48;      // images on the page of a run
constexpr int64_t kReportedSide = 64;  // pixels

// UserError unless the model gives a class to images of that size.
std::shared_ptr<const images::ImageSet> open_set(const ClassifyOptions& o, const config::Model& m) {
  if (!models::reads_images(m) || config::objective(m) != config::Objective::classes)
    throw base::UserError("classify", "a {} model with objective \"{}\" does not classify images{}", m.family,
                          m.objective, models::reads_images(m) ? "; use kintsugi predict" : "");
  const images::LabelKind kind = o.labels.empty() ? images::LabelKind::none : images::LabelKind::classes;
  auto set = std::make_shared<const images::ImageSet>(
      std::vector<std::filesystem::path>(o.files.begin(), o.files.end()), o.labels, images::Use::evaluate, kind);
  const std::string depth = m.image_depth > 0 ? fmt::format("{} x ", m.image_depth) : "",
                    size = fmt::format("{} x {}{} x {} of {}", m.image_channels, depth, m.image_height, m.image_width,
                                       m.image_dtype);
  if (set->size_text() != size)
    throw base::UserError("classify", "{} has images {}; the model reads {}",
                          base::in_quotes(set->files()[0].path().string()), set->size_text(), size);
  set->require_labels(m.outputs);
  return set;
}

// The folder of the run that a model is from, for --report.
std::filesystem::path run_folder(const std::string& model) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::path(model) / "";
  for (const std::filesystem::path& run : {folder.parent_path(), folder.parent_path().parent_path()})
    if (std::filesystem::exists(run / "metrics.jsonl", error)) return run;
  throw base::UserError("classify", "--report is for the page of a run, and {} is not the folder of one",
                        base::in_quotes(model));
}

report::Predictions predictions_of(const ClassifyOptions& o, const images::ImageSet& set,
                                   const evaluate::CheckpointModel& model, std::span<const float> logits) {
  const size_t classes = logits.size() / static_cast<size_t>(set.size());
  Confusion confusion(static_cast<int64_t>(classes));
  report::Predictions p = {.checkpoint = model.folder().string(),
                           .images = fmt::format("{}", fmt::join(o.files, ", "))};
  std::vector<std::byte> image(static_cast<size_t>(set.files()[0].bytes_per_image()));
  const images::Picture picture = {.channels = set.channels(),
                                   .depth = set.depth(),
                                   .height = set.height(),
                                   .width = set.width(),
                                   .dtype = set.dtype()};
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::span<const float> mine = logits.subspan(static_cast<size_t>(i) * classes, classes);
    confusion.add(set.label(i), mine);
    if (i >= kReported) continue;
    report::PredictedImage& sample = p.samples.emplace_back();
    sample.label = set.label(i);
    for (const RankedClass& c : best_classes(mine, o.top)) sample.best.push_back({c.number, c.probability});
    set.read(i, image);
    sample.bitmap = text::write_base64(images::bitmap(picture, image, kReportedSide));
  }
  p.labelled = confusion.labelled;
  p.first = confusion.first;
  p.five = confusion.among_five;
  p.counts = confusion.counts;
  return p;
}

void print_classes(const ClassifyOptions& o, const images::ImageSet& set, std::span<const float> logits) {
  const size_t classes = logits.size() / static_cast<size_t>(set.size());
  Confusion confusion(static_cast<int64_t>(classes));
  std::string text;
  for (int64_t i = 0; i < set.size(); ++i) {
    const std::span<const float> mine = logits.subspan(static_cast<size_t>(i) * classes, classes);
    const int32_t label = set.label(i);
    confusion.add(label, mine);
    if (i >= o.show) continue;
    text += fmt::format("image {}:", i);
    for (const RankedClass& c : best_classes(mine, o.top))
      text += fmt::format("  {} ({:.1f}%)", c.number, 100 * c.probability);
    text += label < 0 ? "\n" : fmt::format("  label {}\n", label);
  }
  if (set.size() > o.show && o.show > 0) text += fmt::format("... {} more\n", base::group_digits(set.size() - o.show));
  if (confusion.labelled > 0) {
    const auto all = static_cast<double>(confusion.labelled);
    text += fmt::format("top-1 {:.2f}%, top-5 {:.2f}% of {} images\n", 100 * static_cast<double>(confusion.first) / all,
                        100 * static_cast<double>(confusion.among_five) / all, base::group_digits(confusion.labelled));
    text += confusion.table(o.confusion);
  }
  write_out("{}", text);
}

void classify_on_rank(const ClassifyOptions& o, const config::Parallel& layout, comm::World& world,
                      Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  std::shared_ptr<const images::ImageSet> set;
  comm::together(model.all(), [&] { set = open_set(o, model.settings().model); });
  std::string fingerprints;
  for (const images::ImageFile& file : set->files()) fingerprints += file.fingerprint();
  comm::require_same(model.all(), "classify", "images", fingerprints);
  const samples::ImageSamples source(set, {.order = {}});
  const std::vector<float> logits = evaluate::outputs_of_samples(model, source, o.batch, [&](int64_t n) {
    if (model.leads()) progress.count(n, set->size(), "images");
  });
  if (!model.leads()) return;
  warn_of_repeated(model.repeated(), "a batch", progress);
  progress.finish();
  if (!o.output.empty())
    base::write_output(
        o.output, npy_file(logits, static_cast<size_t>(set->size()), logits.size() / static_cast<size_t>(set->size())));
  if (o.report)
    base::write_file_atomically(run_folder(o.model->model) / report::kPredictionsFile,
                                write_predictions(predictions_of(o, *set, model, logits)));
  print_classes(o, *set, logits);
}

}  // namespace

void add_classify(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("classify", "Classifies images with a trained model");
  const auto o = std::make_shared<ClassifyOptions>();
  o->model = add_model_options(verb);
  verb.texts("images", o->files, "Image files (CIFAR, idx, npy), or the folder of a data set").required();
  verb.text("--labels", o->labels, "A separate file with the labels of the images");
  verb.text("--output", o->output, "A file for the logits, .npy");
  verb.integer("--top", o->top, {1, 1000}, "Classes of each image").show_default();
  verb.integer("--show", o->show, {0, 1'000'000}, "Number of images to print individually").show_default();
  verb.integer("--batch", o->batch, {1, 100'000}, "Batch size, over all ranks").show_default();
  verb.flag("--confusion", o->confusion, "Print the full confusion matrix, if labels are known");
  verb.flag("--report", o->report, "Keep the result in the run's folder, to be shown by report");
  verb.run([o] {
    if (o->report) run_folder(o->model->model);
    find_best("classify", *o->model);
    if (!o->output.empty() && !o->output.ends_with(".npy"))
      throw base::UserError("classify", "--output {} does not end with .npy", base::one_line(o->output, 60));
    const std::array<base::Output, 1> outputs = {{{"--output", o->output}}};
    const std::vector<std::filesystem::path> inputs(o->files.begin(), o->files.end());
    if (!o->output.empty()) require_outputs("classify", outputs, inputs);
    Progress progress("classifying");
    on_ranks(
        "classify", *o->model, [](const config::Parallel&) {},
        [&](const config::Parallel& layout, comm::World& world) { classify_on_rank(*o, layout, world, progress); });
  });
}

}  // namespace kintsugi::app
