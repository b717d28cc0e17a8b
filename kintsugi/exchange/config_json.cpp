#include "kintsugi/exchange/config_json.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/json_writer.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/exchange/config_images.h"
#include "kintsugi/exchange/config_layers.h"
#include "kintsugi/exchange/config_reader.h"
#include "kintsugi/exchange/config_rope.h"
#include "kintsugi/exchange/weight_map.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange {
namespace {

using base::Json;
using config::Key;
using models::ConfigRow;
using models::Family;
using tensor::DType;

constexpr std::string_view kWhere = "model";

// Keys of any family that do not affect the computation.
constexpr auto kIgnored = std::to_array<std::string_view>(
    {"architectures", "model_type", "transformers_version", "_name_or_path", "_attn_implementation",
     "_attn_implementation_autoset", "attn_implementation", "_experts_implementation", "auto_map", "tokenizer_class",
     "is_decoder",
     // token ids
     "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "cls_token_id", "mask_token_id",
     "decoder_start_token_id", "prefix",
     // training, and what a call returns
     "use_cache", "cache_implementation", "initializer_range", "gradient_checkpointing", "output_attentions",
     "output_hidden_states", "output_router_logits", "output_past", "return_dict", "keys_to_ignore_at_inference",
     "torchscript", "use_bfloat16", "chunk_size_feed_forward", "pretraining_tp", "finetuning_task",
     "task_specific_params", "problem_type", "id2label", "label2id", "num_labels", "_num_labels",
     // generation, which config.json contained before generation_config.json existed
     "max_length", "min_length", "do_sample", "early_stopping", "num_beams", "num_beam_groups", "diversity_penalty",
     "temperature", "top_k", "top_p", "typical_p", "repetition_penalty", "length_penalty", "no_repeat_ngram_size",
     "encoder_no_repeat_ngram_size", "bad_words_ids", "num_return_sequences", "output_scores",
     "return_dict_in_generate", "forced_bos_token_id", "forced_eos_token_id", "remove_invalid_values",
     "exponential_decay_length_penalty", "suppress_tokens", "begin_suppress_tokens",
     // of other programs
     "transformers.js_config"});

// Keys of any family that change the computation, with the only supported value.
constexpr std::pair<std::string_view, std::string_view> kOnlyIn[] = {
    {"is_causal", "true"}, {"is_encoder_decoder", "false"}, {"pruned_heads", "{}"}, {"attention_chunk_size", "null"}};

constexpr std::array<std::pair<std::string_view, DType>, 4> kDtypes = {
    {{"float32", DType::f32}, {"bfloat16", DType::bf16}, {"float16", DType::f16}, {"float64", DType::f64}}};

const Family& family_of(const Json& root) {
  const Json type = root.at("model_type");
  std::string names;
  for (const Family& f : models::families())
    for (const std::string_view name : f.hugging_face.model_types) {
      if (name == type.text()) return f;
      names += (names.empty() ? "" : ", ") + std::string(name);
    }
  type.fail("the model_type {} is not known here; there are {}, {}", type.shown(), names,
            fmt::join(other_image_types(), ", "));
}

DType read_dtype(ConfigReader& config) {
  const std::optional<Json> now = config.take("dtype"), before = config.take("torch_dtype");
  const std::optional<Json> given = now ? now : before;
  if (!given) return DType::f32;
  for (const auto& [name, dtype] : kDtypes)
    if (given->text() == name) return dtype;
  given->refuse("one of float32, bfloat16, float16, float64");
}

// Translates a value by a list "theirs:ours ...". Nothing if it is not in the list.
std::optional<std::string> translated(std::string_view words, std::string_view theirs) {
  for (const std::string& pair : tensor::words(words)) {
    const size_t colon = pair.find(':');
    if (pair.substr(0, colon) == theirs) return pair.substr(colon + 1);
  }
  return std::nullopt;
}

// The TOML of a value of `key`.
std::string toml_of(const Json& value, const ConfigRow& row, const Key& key) {
  if (!row.words.empty()) {
    const std::string theirs = value.is_text() ? std::string(value.text()) : value.compact();
    const std::optional<std::string> ours = translated(row.words, theirs);
    if (!ours) value.fail("\"{}\" is {}, which is not known here", row.theirs, value.shown());
    return config::to_toml(std::string_view(*ours));
  }
  if (std::holds_alternative<config::Boolean>(key.allowed)) return value.boolean() ? "true" : "false";
  if (std::holds_alternative<config::Integer>(key.allowed)) {
    const auto& range = std::get<config::Integer>(key.allowed);
    const int64_t least = row.zero == ConfigRow::Zero::derived ? 1 : 0;
    return fmt::format("{}", value.whole(std::max(range.min, least), range.max));
  }
  if (std::holds_alternative<config::Numbers>(key.allowed)) {
    std::vector<double> numbers;
    if (value.is_number()) return config::to_toml(value.number());
    for (const Json& item : value.list()) numbers.push_back(item.number());
    return config::to_toml(config::Value(numbers));
  }
  const double number = value.number();
  return config::to_toml(row.use == ConfigRow::Use::inverse_square_root ? 1.0 / std::sqrt(number) : number);
}

const Key& key_of(const ConfigRow& row) {
  return config::keys()[static_cast<size_t>(config::key_index("model." + std::string(row.ours)))];
}

Json parsed(std::string_view value) {
  return Json::parse(kWhere, "default", value);
}

// The value of a row under either of its names.
std::optional<Json> take(ConfigReader& config, const ConfigRow& row) {
  std::optional<Json> given = config.take(row.theirs);
  if (row.other.empty()) return given;
  std::optional<Json> other = config.take(row.other);
  if (given && other && given->compact() != other->compact())
    other->fail("\"{}\" is {}, and \"{}\", which is the same, {}", row.other, other->shown(), row.theirs,
                given->shown());
  return given ? given : other;
}

void read_row(ConfigReader& config, const ConfigRow& row, ModelText& model) {
  const std::optional<Json> given = take(config, row);
  switch (row.use) {
    case ConfigRow::Use::ignored:
      return;
    case ConfigRow::Use::only:
      if (given && given->compact() != row.absent)
        given->fail("\"{}\" is {}; here there is only {}", row.theirs, given->shown(), row.absent);
      return;
    case ConfigRow::Use::is:
    case ConfigRow::Use::inverse_square_root:
      break;
  }
  // null, given or by default: the family derives it.
  const bool named = config.root().has(row.theirs);
  if (!given && named && row.zero == ConfigRow::Zero::null) return model.set(row.ours, "0");
  if (!given && (named || row.absent == "null")) return;
  model.set(row.ours, toml_of(given ? *given : parsed(row.absent), row, key_of(row)));
}

// Whether the folder has custom code, which transformers runs instead of the family's.
bool has_own_code(const Json& root) {
  const auto map = root.find("auto_map");
  if (!map || !map->is_object()) return false;
  for (const Json& entry : map->members())
    if (entry.key().starts_with("AutoModel")) return true;
  return false;
}

[[noreturn]] void refuse_quantized(const Json& quantized) {
  const auto method = quantized.is_object() ? quantized.find("quant_method") : std::nullopt;
  quantized.fail(
      "\"quantization_config\": quantized weights{} are not supported; dequantize them to bfloat16 first, for example "
      "with "
      "transformers",
      method && method->is_text() ? fmt::format(" ({})", method->text()) : "");
}

// Members without a row in the family: its models do not read them.
std::vector<std::string> notes_of(const ConfigReader& config) {
  std::string names;
  size_t count = 0;
  for (const Json& member : config.rest()) {
    if (has_own_code(config.root()))
      member.fail(
          "\"{}\" is {}, an unknown setting, and according to \"auto_map\" the folder has its own code, which may read "
          "it",
          member.key(), member.shown());
    if (++count <= 8) names += (names.empty() ? "" : ", ") + base::in_quotes(member.key(), 40);
  }
  if (count == 0) return {};
  return {fmt::format("config.json: {}{} {} not used by this family and ignored", names,
                      count > 8 ? fmt::format(" and {} more", count - 8) : "", count == 1 ? "is" : "are")};
}

void write_row(const config::Settings& s, const ConfigRow& row, base::JsonWriter& out) {
  const config::Value value = key_of(row).get(s);
  out.key(row.theirs);
  if (!row.words.empty()) {
    const std::string& ours = std::get<std::string>(value);
    const Json absent = parsed(row.absent);  // the family's word for it, if there are several
    if (absent.is_text() && translated(row.words, absent.text()) == ours) {
      out.value(absent.text());
      return;
    }
    for (const std::string& pair : tensor::words(row.words)) {
      const size_t colon = pair.find(':');
      if (pair.substr(colon + 1) != ours) continue;
      const std::string theirs = pair.substr(0, colon);
      theirs == "true" || theirs == "false" ? out.value(theirs == "true") : out.value(std::string_view(theirs));
      return;
    }
    throw base::UserError(kWhere, "config.json has no word for {} = \"{}\"", row.ours, ours);
  }
  if (std::holds_alternative<bool>(value)) {
    out.value(std::get<bool>(value));
  } else if (const auto* numbers = std::get_if<std::vector<double>>(&value)) {
    if (numbers->empty()) return void(out.null());
    out.list([&] {
      for (const double x : *numbers) out.value(x);
    });
  } else if (std::holds_alternative<int64_t>(value)) {
    const int64_t number = std::get<int64_t>(value);
    const bool none =
        row.zero == ConfigRow::Zero::null || (row.absent == "null" && row.zero == ConfigRow::Zero::derived);
    none&& number == 0 ? out.null() : out.value(number);
  } else {
    const double number = std::get<double>(value);
    const bool none = row.absent == "null" && number == 0.0;
    // 0 means 1 / sqrt(head_dim).
    const double theirs = row.use != ConfigRow::Use::inverse_square_root ? number
                          : number == 0.0 ? static_cast<double>(config::width_of_head(s.model))
                                          : 1.0 / (number * number);
    const auto whole = std::llround(theirs);
    if (none)
      out.null();
    else if (row.use == ConfigRow::Use::inverse_square_root && std::abs(theirs - static_cast<double>(whole)) < 1e-9)
      out.value(whole);
    else
      out.value(theirs);
  }
}

// The objective of a model with several heads: by class name and labels.
void read_objective(const Json& root, const Family& of, ModelText& model) {
  const models::HuggingFace& family = of.hugging_face;
  if (family.architectures.size() < 2) return;
  std::string_view name = family.architectures.front().name;
  if (const auto list = root.find("architectures"); list && !list->is_null() && list->list().size() > 0)
    name = (*list->list().begin()).text();
  // A network of images without a head initializes a training with a new one.
  const std::string_view standard = family.architectures.front().name;
  if (of.config.reads_images && name == std::string(standard.substr(0, standard.find("For"))) + "Model")
    name = standard;
  const auto first = std::ranges::find(family.architectures, name, &models::HuggingFace::Architecture::name);
  if (first == family.architectures.end()) {
    std::string names;
    for (const auto& a : family.architectures)
      if (names.find(a.name) == names.npos) names += (names.empty() ? "" : ", ") + std::string(a.name);
    root.at("architectures").fail("the architecture \"{}\" is not known here; there are {}", name, names);
  }
  config::Objective objective = first->objective;
  if (objective == config::Objective::classes) objective = read_labels(root, model);
  model.set("objective", config::to_toml(config::kObjectives[static_cast<size_t>(objective)]));
}

// Sizes of images that need not be square, and the number of their fields.
constexpr std::pair<std::string_view, std::string_view> kFieldSizes[] = {
    {"image_height", "image_height"}, {"image_width", "image_width"}, {"num_labels", "outputs"}};

bool has_fields(const models::HuggingFace& family) {
  return std::ranges::any_of(family.architectures,
                             [](const auto& a) { return a.objective == config::Objective::fields; });
}

void read_field_sizes(ConfigReader& config, const models::HuggingFace& family, ModelText& model) {
  const auto list = config.root().find("architectures");
  if (!has_fields(family) || !list || list->is_null() || list->list().size() == 0) return;
  const auto found =
      std::ranges::find(family.architectures, (*list->list().begin()).text(), &models::HuggingFace::Architecture::name);
  if (found == family.architectures.end() || found->objective != config::Objective::fields) return;
  for (const auto& [theirs, ours] : kFieldSizes)
    if (const auto given = config.take(theirs)) model.set(ours, given->whole(1, 1'000'000));
}

void write_objective(const config::Model& m, const models::HuggingFace& family, base::JsonWriter& out) {
  const config::Objective objective = config::objective(m);
  if (objective == config::Objective::fields && has_fields(family)) {
    out.key("image_height").value(m.image_height);
    out.key("image_width").value(m.image_width);
    out.key("num_labels").value(m.outputs);
  }
  if (objective != config::Objective::classes && objective != config::Objective::numbers) return;
  const auto name = [](int64_t i) { return fmt::format("LABEL_{}", i); };
  out.key("id2label").object([&] {
    for (int64_t i = 0; i < m.outputs; ++i) out.key(fmt::format("{}", i)).value(name(i));
  });
  out.key("label2id").object([&] {
    for (int64_t i = 0; i < m.outputs; ++i) out.key(name(i)).value(i);
  });
  out.key("problem_type").value(objective == config::Objective::numbers ? "regression" : "single_label_classification");
}

// The operations for a sample of that length, with attributes, and the weights.
std::string computation_of(const config::Model& model, int64_t sequence) {
  config::Settings settings;
  settings.model = model;
  const models::Graphs graphs = models::build_evaluation(settings, 1, sequence);
  return graph::print(*graphs.states) + graph::print(*graphs.evaluate);
}

bool computes_same(const config::Model& a, const config::Model& b) {
  if (a.family != b.family || a.vocab != b.vocab || a.context != b.context) return false;
  if (computation_of(a, a.context) != computation_of(b, a.context)) return false;
  // LongRoPE has separate factors for short texts.
  const int64_t within = a.rope_original_context;
  if (within > 0 && within < a.context) return computation_of(a, within) == computation_of(b, within);
  return true;
}

// Keys that transformers' configurations of image models lack: it keeps them in preprocessor_config.json.
bool is_of_images(const ConfigRow& row) {
  return row.ours == "image_dtype" || row.ours == "image_mean" || row.ours == "image_deviation";
}

// Throws UserError for models that transformers refuses, although config.json could describe them.
void require_accepted(const config::Model& m, const models::HuggingFace& family) {
  const bool scaled = config::rope_scaling(m) != config::RopeScaling::none;
  const std::vector<std::string> scalings = tensor::words(family.rope ? family.rope->scalings : "");
  if (scaled && !scalings.empty() && std::ranges::find(scalings, m.rope_scaling) == scalings.end())
    throw base::UserError(kWhere, "transformers loads the family {} only with rope_scaling = \"{}\", not \"{}\"",
                          m.family, fmt::join(scalings, "\" or \""), m.rope_scaling);
  // A family with scalings of its own also checks the lengths of their factors against embed / heads.
  const bool derived = family.derived_head_dim || (scaled && !scalings.empty());
  if (const int64_t head_dim = config::width_of_head(m); derived && head_dim * m.heads != m.embed)
    throw base::UserError(kWhere, "transformers loads the family {}{} only with head_dim = embed / heads, not {}",
                          m.family, family.derived_head_dim ? "" : fmt::format(" with {}", m.rope_scaling), head_dim);
}

// Throws UserError unless reading back yields an equivalent model.
void require_same(const config::Model& model, const std::string& text) {
  const config::Model read = read_config("config.json", text).model;
  if (computes_same(model, read)) return;
  config::Settings given, theirs;
  given.model = model;
  theirs.model = read;
  const auto refuse = [&](const Key& key) {
    throw base::UserError(kWhere, "config.json of the family {} cannot say {} = {}; it would be read as {}",
                          model.family, key.full_name(), config::to_toml(key.get(given)),
                          config::to_toml(key.get(theirs)));
  };
  const Key* differs = nullptr;
  for (const Key& key : config::keys()) {
    if (key.section != "model" || key.name == "name" || key.name == "dropout" || key.name == "bias") continue;
    if (key.get(given) == key.get(theirs)) continue;
    config::Settings changed = given;
    key.set(changed, key.get(theirs));
    if (!differs) differs = &key;
    if (!computes_same(model, changed.model)) refuse(key);
  }
  base::require(differs != nullptr, "exchange", "config.json of {} is read as another model", model.family);
  refuse(*differs);
}

}  // namespace

FolderConfig read_config(std::string_view name, std::string_view text) {
  const Json root = Json::parse(kWhere, name, text);
  ConfigReader config(root);
  for (const std::string_view key : kIgnored) config.ignore(key);
  for (const auto& [key, value] : kOnlyIn)
    if (const auto given = config.take(key); given && given->compact() != value)
      given->fail("\"{}\" is {}; here there is only {}", key, given->shown(), value);
  if (const auto quantized = config.take("quantization_config")) refuse_quantized(*quantized);
  ModelText model;
  const std::optional<OtherImageModel> other = read_other_image_model(config, model);
  const Family& family = other ? models::family(other->family) : family_of(root);
  model.set("family", fmt::format("\"{}\"", family.config.name));
  const models::HuggingFace& rows = family.hugging_face;
  if (!other) read_field_sizes(config, rows, model);
  for (const ConfigRow& row : rows.config)
    if (row.ours.empty() || !model.has(row.ours))
      read_row(config, row, model);
    else if (!other)
      config.ignore(row.theirs);
  if (!other) read_objective(root, family, model);
  const DType dtype = read_dtype(config);
  const config::Given known = config::read_text(model.text(), name, models::catalog());
  const config::Model& m = known.settings.model;
  read_layers(config, rows, m.layers, model);
  if (rows.rope) read_rope(config, *rows.rope, config::width_of_head(m), model);
  std::vector<std::string> notes = notes_of(config);
  const std::vector<std::string> sets = {"train.sequence=1"};
  return {
      config::resolve(config::read_text(model.text(), fmt::format("{}, as [model]", name), models::catalog(), sets), 1)
          .settings.model,
      dtype, std::move(notes), other ? other->named_by : "model_type", other && other->any_size};
}

std::string why_not_exported(const config::Model& model) {
  try {
    weight_map(models::family(model.family), model);
    write_config(model, DType::f32);
    return "";
  } catch (const base::UserError& error) {
    const std::string_view what = error.what();
    const size_t at = what.find("] ");
    return std::string(at == what.npos ? what : what.substr(at + 2));
  }
}

void write_text_ids(const TextIds& ids, base::JsonWriter& out) {
  out.key("bos_token_id");
  ids.begin ? out.value(*ids.begin) : out.null();
  out.key("eos_token_id");
  if (ids.ends.size() > 1)
    out.list([&] {
      for (const int32_t id : ids.ends) out.value(id);
    });
  else
    ids.ends.empty() ? out.null() : out.value(ids.ends.front());
}

std::string write_config(const config::Model& model, DType dtype, const TextIds& ids, bool as_transformers) {
  const models::HuggingFace& rows = models::family(model.family).hugging_face;
  require_accepted(model, rows);
  config::Settings s;
  s.model = model;
  base::JsonWriter out(2);
  out.object([&] {
    out.key("architectures").list([&] {
      if (as_transformers) out.value(transformers_architecture(model));
      for (const auto& a : rows.architectures)
        if (a.objective == config::objective(model)) out.value(a.name);
    });
    if (as_transformers)
      write_transformers_images(model, out);
    else
      out.key("model_type").value(rows.model_types.front());
    std::set<std::string_view> written;  // one of theirs may be several of ours
    for (const ConfigRow& row : rows.config)
      if (!row.ours.empty() && (!as_transformers || is_of_images(row)) && written.insert(row.theirs).second)
        write_row(s, row, out);
    if (rows.rope) write_rope(model, *rows.rope, out);
    write_layers(model, rows, out);
    write_objective(model, rows, out);
    write_text_ids(ids, out);
    out.key("pad_token_id").null();
    for (const auto& [name, type] : kDtypes)
      if (type == dtype) out.key("torch_dtype").value(name);
  });
  require_same(model, out.text());
  return out.text() + "\n";
}

}  // namespace kintsugi::exchange
