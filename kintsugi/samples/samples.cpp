#include "kintsugi/samples/samples.h"

#include <fmt/format.h>

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/samples/document_samples.h"
#include "kintsugi/samples/image_samples.h"
#include "kintsugi/samples/masked_samples.h"
#include "kintsugi/samples/number_samples.h"
#include "kintsugi/samples/preference_samples.h"
#include "kintsugi/samples/rollout_samples.h"

namespace kintsugi::samples {
namespace {

using config::Objective;
using config::Settings;

bool is_masked(const config::Model& model) {
  const Objective o = config::objective(model);
  return o == Objective::masked || o == Objective::masked_next;
}

// Throws UserError for a special id of samples for which the model has no row.
void require_marks(const Settings& s) {
  for (const auto& [key, id] :
       {std::pair{"first_token", s.data.first_token}, std::pair{"separator_token", s.data.separator_token}})
    if (id >= s.model.vocab)
      throw base::UserError("data", "data.{} is {}, and the vocabulary has {}", key, id, s.model.vocab);
}

MaskedOptions masked_options(const Settings& s, int64_t sequence) {
  require_marks(s);
  if (s.data.mask_token < 0 || s.data.mask_token >= s.model.vocab)
    throw base::UserError("data",
                          "the objective \"{}\" needs an id that replaces a masked token: data.mask_token is {}, "
                          "and the vocabulary has {}",
                          s.model.objective, s.data.mask_token, s.model.vocab);
  return {.sequence = sequence,
          .pairs = config::objective(s.model) == Objective::masked_next,
          .share = s.data.mask_share,
          .mask = s.data.mask_token,
          .first = s.data.first_token,
          .separator = s.data.separator_token,
          .vocab = s.model.vocab,
          .seed = s.train.seed};
}

// -1: none.
int32_t begin_of_samples(const Settings& s) {
  if (!config::begins_samples(s)) return -1;
  require_marks(s);
  return static_cast<int32_t>(s.data.first_token);
}

// Windows with document boundaries, so that pairs are cut within a document.
SamplerOptions windows_of(const Settings& s, int64_t sequence, bool documents) {
  return {.sequence = sequence,
          .seed = s.train.seed,
          .reset_at_document = documents,
          .vocab_size = s.model.vocab,
          .begin = begin_of_samples(s)};
}

int64_t targets_of(const config::Model& model) {
  const Objective o = config::objective(model);
  return o == Objective::numbers || o == Objective::fields ? model.outputs : 0;
}

// The id of the single token with one of these names, or -1.
int64_t id_of(const text::Tokenizer& tokenizer, std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names) {
    try {
      const std::vector<int32_t> ids = tokenizer.encode(name);
      if (ids.size() == 1 && tokenizer.decode(ids) == name) return ids[0];
    } catch (const base::UserError&) {  // the tokenizer lacks its characters
    }
  }
  return -1;
}

}  // namespace

images::LabelKind label_kind(const config::Model& model) {
  switch (config::objective(model)) {
    case Objective::numbers:
      return images::LabelKind::numbers;
    case Objective::pixels:
      return images::LabelKind::pixels;
    case Objective::fields:
      return images::LabelKind::fields;
    case Objective::next:
    case Objective::masked:
    case Objective::masked_next:
    case Objective::classes:
      return images::LabelKind::classes;
  }
  throw base::InternalError("samples", "an unknown objective");
}

namespace {

std::unique_ptr<FiniteSource> labelled_samples(const Settings& s, const DataFile& file, int64_t sequence,
                                               const SampleOrder& order) {
  const int64_t targets = targets_of(s.model);
  if (file.images) {
    if (targets != file.images->numbers())
      throw base::UserError("data", "images have {} {}, but the model predicts {}", file.images->numbers(),
                            config::objective(s.model) == Objective::fields ? "channels of fields" : "numbers each",
                            targets);
    if (config::objective(s.model) == Objective::fields &&
        config::field_loss(s.train) == config::FieldLoss::relative_l2)
      file.images->require_norms();
    file.images->require_labels(s.model.outputs);
    ImageOptions options = {.order = order, .seed = s.train.seed};
    if (order.shuffled) {
      options.crop_padding = s.data.crop_padding;
      options.flip = s.data.flip;
      options.mixup = s.train.mixup;
    }
    return std::make_unique<ImageSamples>(file.images, options);
  }
  if (targets == 0) file.numbers->require_classes(file.numbers->columns() - 1, s.model.outputs);
  if (const int64_t labels = std::max<int64_t>(targets, 1);
      !file.tokens && file.numbers->columns() != s.model.features + labels)
    throw base::UserError("data", "\"{}\" has {} columns, but the model needs {} features and {}",
                          file.numbers->path().string(), file.numbers->columns(), s.model.features,
                          targets > 0 ? fmt::format("{} targets", targets) : "a class");
  if (!file.tokens)
    return std::make_unique<NumberSamples>(
        file.numbers, NumberOptions{.features = s.model.features, .targets = targets, .order = order});
  require_marks(s);
  return std::make_unique<DocumentSamples>(file.tokens, file.numbers,
                                           DocumentOptions{.sequence = sequence,
                                                           .targets = targets,
                                                           .first = s.data.first_token,
                                                           .separator = s.data.separator_token,
                                                           .vocab = s.model.vocab,
                                                           .order = order});
}

TooLong too_long(const Settings& s) {
  const std::string& asked = s.data.long_conversations;
  return asked == "drop" ? TooLong::drop : asked == "cut" ? TooLong::cut : TooLong::refuse;
}

std::unique_ptr<PreferenceSamples> preference_samples(const Settings& s, const DataFile& file, int64_t sequence,
                                                      const SampleOrder& order) {
  return std::make_unique<PreferenceSamples>(
      file.preferences, PreferenceOptions{.sequence = sequence, .too_long = too_long(s), .order = order});
}

// Packed if a document has the same positions wherever it begins.
std::unique_ptr<ConversationSamples> conversation_samples(const Settings& s, const DataFile& file, int64_t sequence,
                                                          const SampleOrder& order) {
  return std::make_unique<ConversationSamples>(
      file.conversations, ConversationOptions{.sequence = sequence,
                                              .packed = config::positions(s.model) != config::Positions::learned,
                                              .too_long = too_long(s),
                                              .order = order});
}

}  // namespace

config::TokenizerIds ids_of(const text::Tokenizer& tokenizer) {
  const text::SpecialTokens around = tokenizer.special_tokens();
  return {.mask = id_of(tokenizer, {"[MASK]", "<mask>"}),
          .first = around.before.empty() ? tokenizer.begin_of_document().value_or(-1) : around.before.front(),
          .separator = around.after.empty() ? -1 : around.after.back()};
}

bool has_labels(const config::Model& model) {
  const Objective o = config::objective(model);
  return o == Objective::classes || o == Objective::numbers || o == Objective::pixels || o == Objective::fields;
}

std::unique_ptr<SampleSource> training_samples(const Settings& s, const std::vector<DataFile>& files) {
  if (has_labels(s.model)) {
    if (files.size() != 1)
      throw base::UserError("data", "the objective \"{}\" is learnt from one file; data.train names {}",
                            s.model.objective, files.size());
    return labelled_samples(s, files[0], s.train.sequence, {.shuffled = true, .seed = s.train.seed});
  }
  if (std::ranges::any_of(files, [](const DataFile& file) { return file.conversations != nullptr; })) {
    if (files.size() != 1)
      throw base::UserError("data", "conversations are learnt from one file; data.train names {}", files.size());
    return conversation_samples(s, files[0], s.train.sequence, {.shuffled = true, .seed = s.train.seed});
  }
  if (!files.empty() && files[0].preferences) {
    if (files.size() != 1)
      throw base::UserError("data", "preferences are learnt from one file; data.train names {}", files.size());
    return preference_samples(s, files[0], s.train.sequence, {.shuffled = true, .seed = s.train.seed});
  }
  if (!files.empty() && files[0].prompts) {
    if (files.size() != 1)
      throw base::UserError("data", "rewards are learnt from one file of prompts; data.train names {}", files.size());
    return std::make_unique<RolloutSamples>(files[0].prompts,
                                            RolloutOptions{.sequence = s.train.sequence,
                                                           .group = s.grpo.group,
                                                           .length = s.grpo.length,
                                                           .too_long = too_long(s),
                                                           .order = {.shuffled = true, .seed = s.train.seed}});
  }
  std::vector<WeightedFile> list;
  for (const DataFile& file : files) list.push_back({file.tokens, file.weight});
  if (!is_masked(s.model))
    return std::make_unique<Sampler>(std::move(list), windows_of(s, s.train.sequence, s.data.reset_at_document));
  const MaskedOptions options = masked_options(s, s.train.sequence);
  auto windows = std::make_unique<Sampler>(std::move(list), windows_of(s, window_of(options), options.pairs));
  return std::make_unique<MaskedSamples>(std::move(windows), UINT64_MAX, options);
}

std::unique_ptr<FiniteSource> evaluation_samples(const Settings& s, const DataFile& file, int64_t sequence) {
  if (has_labels(s.model)) return labelled_samples(s, file, sequence, {});
  if (file.conversations) return conversation_samples(s, file, sequence, {});
  if (file.preferences) return preference_samples(s, file, sequence, {});
  const bool masked = is_masked(s.model);
  const MaskedOptions options = masked ? masked_options(s, sequence) : MaskedOptions{};
  const int64_t window = masked ? window_of(options) : sequence;
  auto windows = std::make_unique<EvaluationSampler>(
      file.tokens, EvaluationOptions{.sequence = window,
                                     .reset_at_document = masked ? options.pairs : s.data.reset_at_document,
                                     .vocab_size = s.model.vocab,
                                     .begin = begin_of_samples(s)});
  if (!masked) return windows;
  const uint64_t whole = file.tokens->num_tokens() / static_cast<uint64_t>(window);
  if (whole == 0)
    throw base::UserError("data", "\"{}.bin\" has {} tokens, and one sample of sequence {} needs {}",
                          file.tokens->prefix().string(), file.tokens->num_tokens(), sequence, window);
  return std::make_unique<MaskedSamples>(std::move(windows), whole, options);
}

}  // namespace kintsugi::samples
