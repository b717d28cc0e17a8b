#include "kintsugi/train/batches.h"

#include "kintsugi/compile/programs.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/models/models.h"
#include "kintsugi/samples/image_samples.h"

namespace kintsugi::train {

samples::Share share_of(const run::Executor& executor, const config::Settings& s) {
  const run::Executor::RowRange needed = executor.input_rows(program::Step::train);
  const int64_t all = compile::samples_of_pass(s), rows = needed.last - needed.first;
  const bool even = rows > 0 && all % rows == 0 && needed.first % rows == 0;
  samples::Share share = {
      .global_batch = s.train.global_batch, .micro_batch = all, .warmup = config::batch_stages(s.train)};
  if (even) share.micro_batch = rows, share.ranks = all / rows, share.rank = needed.first / rows;
  return share;
}

samples::Parts parts_of(const config::Settings& s) {
  const config::Model& m = s.model;
  const config::Objective objective = config::objective(m);
  samples::Parts parts;
  if (models::reads_images(m)) {
    parts = {samples::images_part(m.image_channels, m.image_depth, m.image_height, m.image_width,
                                  m.image_dtype == "fp32" ? tensor::DType::f32 : tensor::DType::u8)};
  } else if (!models::reads_tokens(m)) {
    parts = {samples::features_part(m.features)};
  } else {
    parts = {samples::tokens_part(s.train.sequence)};
    if (config::of_tokens(objective)) parts.push_back(samples::labels_part(s.train.sequence));
    if (config::separates_documents(s)) parts.push_back(samples::starts_part(s.train.sequence));
    if (m.token_types > 0) parts.push_back(samples::types_part(s.train.sequence));
  }
  const auto add = [&](const samples::Parts& more) { parts.insert(parts.end(), more.begin(), more.end()); };
  switch (config::method(s.train)) {
    case config::Method::likelihood:
      break;
    case config::Method::dpo:
      add({samples::token_weights_part(s.train.sequence), samples::reference_part()});
      break;
    case config::Method::grpo:
      add({samples::token_weights_part(s.train.sequence), samples::sampled_part(s.train.sequence)});
      break;
  }
  if (objective == config::Objective::pixels)
    add({samples::pixel_classes_part(m.image_depth, m.image_height, m.image_width), samples::weights_part()});
  if (objective == config::Objective::fields)
    add({samples::fields_part(m.outputs, m.image_depth, m.image_height, m.image_width)});
  if (objective == config::Objective::numbers) add(samples::labels_of(m.outputs));
  if (objective == config::Objective::classes || objective == config::Objective::masked_next)
    add(samples::labels_of(0));
  if (s.train.mixup > 0 && objective == config::Objective::classes) add(samples::mixed_labels());
  return parts;
}

}  // namespace kintsugi::train
