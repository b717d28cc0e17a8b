#include <algorithm>
#include <array>
#include <memory>
#include <optional>

#include "app/model_options.h"
#include "app/npy_file.h"
#include "app/outputs.h"
#include "app/progress.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/evaluate/image_outputs.h"
#include "kintsugi/images/image_set.h"
#include "kintsugi/models/models.h"
#include "kintsugi/samples/image_samples.h"

namespace kintsugi::app {
namespace {

struct PredictOptions {
  std::shared_ptr<ModelOptions> model;
  std::vector<std::string> files;
  std::string output;
  int64_t batch = 32;
};

// UserError unless the model predicts numbers or pixels of images of that size.
std::shared_ptr<const images::ImageSet> open_set_to_predict(const PredictOptions& o, const config::Model& m) {
  const config::Objective objective = config::objective(m);
  if (models::reads_images(m) && objective == config::Objective::classes)
    throw base::UserError("predict", "the model predicts a class of each image; `kintsugi classify` prints them");
  if (!models::reads_images(m))
    throw base::UserError("predict", "a {} model with objective \"{}\" does not read images", m.family, m.objective);
  auto set =
      std::make_shared<const images::ImageSet>(std::vector<std::filesystem::path>(o.files.begin(), o.files.end()), "",
                                               images::Use::evaluate, images::LabelKind::none);
  const std::string depth = m.image_depth > 0 ? fmt::format("{} x ", m.image_depth) : "",
                    size = fmt::format("{} x {}{} x {} of {}", m.image_channels, depth, m.image_height, m.image_width,
                                       m.image_dtype);
  if (set->size_text() != size)
    throw base::UserError("predict", "{} has images {}; the model reads {}",
                          base::in_quotes(set->files()[0].path().string()), set->size_text(), size);
  return set;
}

// The array of predictions: numbers fp32 [image number], fields fp32 [image channel [depth] height width], classes of
// pixels uint8 [image [depth] height width].
class Predictions {
 public:
  Predictions(const std::string& path, const config::Model& m, int64_t images)
      : objective_(config::objective(m)), outputs_(m.outputs) {
    std::vector<int64_t> shape = {images};
    if (objective_ != config::Objective::pixels) shape.push_back(outputs_);
    if (objective_ != config::Objective::numbers) {
      if (m.image_depth > 0) shape.push_back(m.image_depth);
      shape.insert(shape.end(), {m.image_height, m.image_width});
      pixels_ = std::max<int64_t>(m.image_depth, 1) * m.image_height * m.image_width;
    }
    file_.emplace(path, objective_ == config::Objective::pixels ? "|u1" : "<f4", shape);
  }

  // some: [image pixel output]
  void add(std::span<const float> some) {
    const auto each = static_cast<size_t>(pixels_ * outputs_);
    for (size_t at = 0; at < some.size(); at += each) add_image(some.subspan(at, each));
  }
  void finish() { file_->finish(); }

 private:
  void add_image(std::span<const float> image) {
    const auto outputs = static_cast<size_t>(outputs_), pixels = static_cast<size_t>(pixels_);
    if (objective_ == config::Objective::pixels) {
      std::vector<uint8_t> classes;
      for (size_t p = 0; p < pixels; ++p) {
        const auto logits = image.subspan(p * outputs, outputs);
        classes.push_back(static_cast<uint8_t>(std::ranges::max_element(logits) - logits.begin()));
      }
      return file_->append(std::as_bytes(std::span(classes)));
    }
    std::vector<float> channels_first(image.size());
    for (size_t p = 0; p < pixels; ++p)
      for (size_t c = 0; c < outputs; ++c) channels_first[c * pixels + p] = image[p * outputs + c];
    file_->append(std::as_bytes(std::span(channels_first)));
  }

  config::Objective objective_;
  int64_t outputs_, pixels_ = 1;
  std::optional<NpyWriter> file_;
};

void predict_on_rank(const PredictOptions& o, const config::Parallel& layout, comm::World& world, Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  std::shared_ptr<const images::ImageSet> set;
  comm::together(model.all(), [&] { set = open_set_to_predict(o, model.settings().model); });
  std::string fingerprints;
  for (const images::ImageFile& file : set->files()) fingerprints += file.fingerprint();
  comm::require_same(model.all(), "predict", "images", fingerprints);
  const samples::ImageSamples source(set, {.order = {}});
  std::optional<Predictions> predictions;
  comm::together(model.all(), [&] {
    if (model.leads()) predictions.emplace(o.output, model.settings().model, set->size());
  });
  evaluate::for_outputs("predict", model, source, o.batch, [&](int64_t first, std::span<const float> some) {
    comm::together(model.all(), [&] {
      if (!model.leads()) return;
      predictions->add(some);
      progress.count(first, set->size(), "images");
    });
  });
  comm::together(model.all(), [&] {
    if (model.leads()) predictions->finish();
  });
  if (!model.leads()) return;
  warn_of_repeated(model.repeated(), "a batch", progress);
  progress.finish();
  write_out("checkpoint {}\npredicted  {}, {}\n", model.folder(), base::counted(set->size(), "image"), o.output);
}

}  // namespace

void add_predict(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("predict", "Predicts numbers, fields or classes of pixels of images");
  const auto o = std::make_shared<PredictOptions>();
  o->model = add_model_options(verb);
  verb.texts("images", o->files, "Image files (CIFAR, idx, npy), or the folder of a data set").required();
  verb.text("--output", o->output, "A file for the predictions, .npy").required();
  verb.integer("--batch", o->batch, {1, 100'000}, "Batch size, over all ranks").show_default();
  verb.run([o] {
    find_best("predict", *o->model);
    if (!o->output.ends_with(".npy"))
      throw base::UserError("predict", "--output {} does not end with .npy", base::one_line(o->output, 60));
    const std::array<base::Output, 1> outputs = {{{"--output", o->output}}};
    const std::vector<std::filesystem::path> inputs(o->files.begin(), o->files.end());
    require_outputs("predict", outputs, inputs);
    Progress progress("predicting");
    on_ranks(
        "predict", *o->model, [](const config::Parallel&) {},
        [&](const config::Parallel& layout, comm::World& world) { predict_on_rank(*o, layout, world, progress); });
  });
}

}  // namespace kintsugi::app
