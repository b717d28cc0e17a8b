#include <fmt/format.h>

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
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/json.h"
#include "kintsugi/base/write_output.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/evaluate/embed_texts.h"

namespace kintsugi::app {
namespace {

using evaluate::Pooling;

struct EmbedOptions {
  std::shared_ptr<ModelOptions> model;
  std::string texts, field, output, pooling = "mean";
  int64_t batch = 8;
  std::optional<int64_t> layer;
};

constexpr std::array<std::pair<std::string_view, Pooling>, 3> kPoolings = {
    {{"mean", Pooling::mean}, {"last", Pooling::last}, {"first", Pooling::first}}};

Pooling pooling_of(const EmbedOptions& o) {
  for (const auto& [name, pooling] : kPoolings)
    if (name == o.pooling) return pooling;
  throw base::UserError("embed", "--pooling {} is not one of mean, last, first", base::one_line(o.pooling, 40));
}

// A text on each line, or the field of a JSON object on each line.
std::vector<std::string> read_texts(const EmbedOptions& o) {
  const std::string all = base::read_file(o.texts, {int64_t{1} << 30, "texts"});
  std::vector<std::string> texts;
  for (size_t at = 0; at < all.size();) {
    const size_t end = std::min(all.find('\n', at), all.size());
    std::string line = all.substr(at, end - at);
    if (line.ends_with('\r')) line.pop_back();
    const auto number = static_cast<int64_t>(texts.size()) + 1;
    if (!o.field.empty()) line = base::Json::parse("embed", o.texts, line, number).at(o.field).text();
    if (line.empty()) throw base::UserError("embed", "\"{}\":{}: the text is empty", o.texts, number);
    texts.push_back(std::move(line));
    at = end + 1;
  }
  if (texts.empty()) throw base::UserError("embed", "\"{}\" has no texts", o.texts);
  return texts;
}

struct EncodedTexts {
  std::vector<std::vector<int32_t>> ids;
  int64_t cut = 0;  // texts that lost their end
};

EncodedTexts encode_texts(const EmbedOptions& o, const evaluate::CheckpointModel& model) {
  require_tokenizer("embed", model);
  const config::Model& m = model.settings().model;
  const text::SpecialTokens around = model.tokenizer()->special_tokens();
  const auto most = static_cast<size_t>(m.context);
  EncodedTexts encoded;
  for (const std::string& text : read_texts(o)) {
    std::vector<int32_t> ids = around.before;
    model.tokenizer()->encode(text, ids);
    if (ids.size() + around.after.size() > most) {
      if (most <= around.after.size()) throw base::UserError("embed", "the model reads {} tokens", most);
      ids.resize(most - around.after.size());
      ++encoded.cut;
    }
    ids.insert(ids.end(), around.after.begin(), around.after.end());
    if (ids.empty())
      throw base::UserError("embed", "\"{}\":{}: the text encodes to no tokens", o.texts, encoded.ids.size() + 1);
    for (const int32_t id : ids)
      if (id >= m.vocab)
        throw base::UserError("embed", "token id {} is out of range; the model's embedding has {} rows", id, m.vocab);
    encoded.ids.push_back(std::move(ids));
  }
  return encoded;
}

std::string digest_of_texts(const EncodedTexts& texts) {
  uint64_t hash = 14695981039346656037u;  // FNV-1a of all ids
  for (const auto& ids : texts.ids)
    for (const int32_t id : ids) hash = (hash ^ static_cast<uint32_t>(id)) * 1099511628211u;
  return fmt::format("{} texts, {:016x}", texts.ids.size(), hash);
}

std::string csv_of_vectors(std::span<const float> values, size_t columns) {
  std::string file;
  for (size_t i = 0; i < values.size(); ++i) {
    file += fmt::format("{}", values[i]);
    file += (i + 1) % columns == 0 ? '\n' : ',';
  }
  return file;
}

void embed_on_rank(const EmbedOptions& o, const config::Parallel& layout, comm::World& world, Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  EncodedTexts texts;
  const int64_t layers = model.settings().model.layers;
  comm::together(model.all(), [&] {
    if (o.layer && *o.layer > layers)
      throw base::UserError("embed", "--layer {} of a model with {} layers", *o.layer, layers);
  });
  comm::together(model.all(), [&] { texts = encode_texts(o, model); });
  comm::require_same(model.all(), "embed", "texts", digest_of_texts(texts));
  const std::vector<float> vectors = evaluate::embed_texts(model, texts.ids,
                                                           {.pooling = pooling_of(o),
                                                            .blocks = o.layer && *o.layer < layers ? *o.layer : -1,
                                                            .batch = o.batch,
                                                            .progress = [&](int64_t n) {
                                                              if (model.leads())
                                                                progress.count(n, std::ssize(texts.ids), "texts");
                                                            }});
  if (!model.leads()) return;
  warn_of_repeated(model.repeated(), "a batch", progress);
  progress.finish();
  const auto columns = static_cast<size_t>(model.settings().model.embed);
  base::write_output(o.output, o.output.ends_with(".csv") ? csv_of_vectors(vectors, columns)
                                                          : npy_file(vectors, texts.ids.size(), columns));
  write_out("checkpoint {}\ntexts      {}{}\nembeddings {}, {} x {}, {} pooling\n", model.folder(),
            base::group_digits(std::ssize(texts.ids)),
            texts.cut > 0
                ? fmt::format(", {} cut to the model's {} positions", texts.cut, model.settings().model.context)
                : "",
            o.output, texts.ids.size(), columns, o.pooling);
}

void embed_texts_of(const EmbedOptions& o) {
  pooling_of(o);
  if (o.texts.empty()) throw base::UserError("embed", "--texts is missing; name the file of the texts");
  if (!o.output.ends_with(".npy") && !o.output.ends_with(".csv"))
    throw base::UserError("embed", "--output {} must end with .npy or .csv",
                          o.output.empty() ? "is missing, and" : base::one_line(o.output, 60));
  const std::array<base::Output, 1> outputs = {{{"--output", o.output}}};
  const std::array<std::filesystem::path, 1> inputs = {o.texts};
  require_outputs("embed", outputs, inputs);
  Progress progress("embedding");
  on_ranks(
      "embed", *o.model, [](const config::Parallel&) {},
      [&](const config::Parallel& layout, comm::World& world) { embed_on_rank(o, layout, world, progress); });
}

}  // namespace

void add_embed(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("embed", "Computes an embedding of each text in a file");
  const auto o = std::make_shared<EmbedOptions>();
  o->model = add_model_options(verb);
  verb.text("--texts", o->texts, "The input file: one text per line, or with --field one JSON object per line");
  verb.text("--field", o->field, "The JSON field that holds the text");
  verb.text("--output", o->output, "Output file, .npy or .csv");
  verb.text("--pooling", o->pooling, "How to pool the hidden states of a text: mean, last or first").show_default();
  verb.integer(
      "--layer", o->layer, {0, 1'000'000},
      "Take the hidden states after so many layers, 0: of the embedding; the last, after the final norm, if not "
      "given");
  verb.integer("--batch", o->batch, range_of("train.global_batch"), "Batch size, over all ranks").show_default();
  verb.run([o] {
    find_best("embed", *o->model);
    embed_texts_of(*o);
  });
}

}  // namespace kintsugi::app
