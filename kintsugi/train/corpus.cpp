#include "kintsugi/train/corpus.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/choices.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/data/preferences.h"
#include "kintsugi/data/prompts.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/models/models.h"
#include "kintsugi/samples/preference_samples.h"
#include "kintsugi/samples/rollout_samples.h"
#include "kintsugi/text/chat_template.h"
#include "kintsugi/train/sample_texts.h"

namespace kintsugi::train {
namespace {

using Opened = DataFiles::Opened;

// How conversations become ids: the tokenizer, and the chat template.
struct ChatFormat {
  std::string json;  // of the tokenizer
  std::filesystem::path path;
  std::unique_ptr<text::Tokenizer> tokenizer;
  const text::ChatTemplate* chat = nullptr;
};

// From [data] tokenizer and chat_template, or from the model of train.init_from.
ChatFormat chat_format(const config::Settings& s) {
  ChatFormat format;
  std::string trained_with;  // template of a run
  if (!s.data.tokenizer.empty()) {
    format.path = s.data.tokenizer;
    format.tokenizer = text::load_tokenizer(format.path);
    format.json = format.tokenizer->to_json();
  } else if (!s.train.init_from.empty()) {
    const exchange::SavedModel model = exchange::open_model(s.train.init_from, *comm::self_communicator());
    format.path = model.folder();
    format.json = model.tokenizer;
    trained_with = model.settings().data.chat_template;
    if (format.json.empty())
      throw base::UserError("data", "\"{}\" has no tokenizer; name one: data.tokenizer", format.path.string());
    format.tokenizer = text::parse_tokenizer(format.json, format.path.string());
  } else {
    throw base::UserError("data",
                          "conversations need a tokenizer: data.tokenizer, or that of a model in train.init_from");
  }
  const std::string& given = s.data.chat_template.empty() ? trained_with : s.data.chat_template;
  format.chat = given.empty() ? text::find_chat_template(format.path) : &text::chat_template(given);
  if (!format.chat)
    throw base::UserError("data", "\"{}\" names no chat template; set data.chat_template, for example to \"chatml\"",
                          format.path.string());
  return format;
}

// Opens a file, and its labels if the model has them, and adds both to the identity.
Opened open(const config::Settings& s, const std::string& path, const std::string& labels, DataRole role,
            const std::optional<ChatFormat>& chat, DataIdentity& identity) {
  Opened opened;
  if (chat) {
    if (!data::is_conversations(path))
      throw base::UserError("data", "\"{}\" holds no conversations, as data.train does; both must, in NAME.jsonl",
                            path);
    const auto load = [&]<typename Chats>(std::shared_ptr<const Chats>& chats) {
      chats = std::make_shared<const Chats>(path, *chat->tokenizer, *chat->chat);
      identity.push_back({role, path, chats->fingerprint()});
    };
    switch (config::method(s.train)) {
      case config::Method::likelihood:
        load(opened.file.conversations);
        break;
      case config::Method::dpo:
        load(opened.file.preferences);
        break;
      case config::Method::grpo:
        load(opened.file.prompts);
        break;
    }
    return opened;
  }
  const auto open_table = [&](const std::string& table) {
    opened.file.numbers = std::make_shared<const data::NumberTable>(table);
    identity.push_back({role, table, opened.file.numbers->fingerprint()});
  };
  if (!models::reads_tokens(s.model)) {
    open_table(path);
    return opened;
  }
  opened.file.tokens = std::make_shared<const data::TokenFile>(path);
  opened.summary = data::summarize(*opened.file.tokens, static_cast<int>(s.parallel.threads), stderr);
  identity.push_back({role, path, data::checked_fingerprint(*opened.file.tokens, opened.summary)});
  if (!samples::has_labels(s.model)) return opened;
  if (labels.empty())
    throw base::UserError("config",
                          "the objective \"{}\" needs labels of the documents of \"{}\": data.{}_labels names "
                          "a CSV file with a line for each",
                          s.model.objective, path, role == DataRole::train ? "train" : "validation");
  open_table(labels);
  return opened;
}

// The tokenizer that produced all files, as far as known: the fingerprint stored with each file, and the tokenizer.json
// that `prepare` writes into its folder.
class CommonTokenizer {
 public:
  void add(const Opened& opened) {
    if (!opened.file.tokens) return;
    const std::filesystem::path prefix = opened.file.tokens->prefix(), path = prefix.parent_path() / "tokenizer.json";
    const std::string json = std::filesystem::exists(path) ? base::read_file(path) : "";
    std::string fingerprint = opened.summary.tokenizer;
    if (!json.empty()) {
      const std::string beside = data::tokenizer_fingerprint(json);
      if (!fingerprint.empty() && beside != fingerprint)
        throw base::UserError("data",
                              "\"{}\" was made with a different tokenizer than \"{}\" next to it; prepare it again",
                              prefix.string(), path.string());
      fingerprint = beside;
    }
    if (fingerprint.empty()) return;
    if (fingerprint_.empty()) {
      fingerprint_ = fingerprint;
      first_ = prefix;
    }
    if (fingerprint != fingerprint_)
      throw base::UserError("data", "\"{}\" and \"{}\" were made with different tokenizers; prepare both with one",
                            first_.string(), prefix.string());
    if (json_.empty()) {
      json_ = json;
      path_ = path;
    }
  }

  const std::string& json() const { return json_; }  // empty: not found
  const std::filesystem::path& path() const { return path_; }

 private:
  std::string fingerprint_, json_;
  std::filesystem::path first_, path_;
};

// Sets what depends on the tokenizer of the token files, and checks that every token is in the vocabulary.
void fit_tokens(config::Resolved& resolved, const DataFiles& opened) {
  const config::Settings& s = resolved.settings;
  if (!opened.tokenizer_json.empty()) {
    const auto tokenizer = text::parse_tokenizer(opened.tokenizer_json, opened.tokenizer_path.string());
    config::fill_from_tokenizer(resolved, tokenizer->vocab_size(), samples::ids_of(*tokenizer));
    const auto compare = [&](const Opened& file) {
      const int64_t written = file.summary.vocab_size;
      if (!file.file.tokens || written == 0 || written == tokenizer->vocab_size()) return;
      throw base::UserError("data",
                            "\"{}.json\" says that the vocabulary has {} ids; its tokenizer, \"{}\", has {}; "
                            "prepare it again",
                            file.file.tokens->prefix().string(), written, opened.tokenizer_path.string(),
                            tokenizer->vocab_size());
    };
    for (const Opened& train : opened.train) compare(train);
    for (const Opened& validation : opened.validation) compare(validation);
  } else if (s.model.vocab == 0) {
    throw base::UserError("config", "no tokenizer.json next to \"{}\": set model.vocab to the size of its vocabulary",
                          s.data.train[0].path);
  }
  const auto check_chats = [&](const auto& chats) {
    if (chats && chats->largest_id() >= s.model.vocab)
      throw base::UserError("data", "\"{}\": the tokenizer makes the id {}, but the model's table has {} rows",
                            chats->path().string(), chats->largest_id(), s.model.vocab);
  };
  const auto check = [&](const Opened& file) {
    check_chats(file.file.conversations);
    check_chats(file.file.preferences);
    check_chats(file.file.prompts);
    if (!file.file.tokens) return;
    data::require_vocabulary(*file.file.tokens, file.summary, s.model.vocab);
  };
  for (const Opened& train : opened.train) check(train);
  for (const Opened& validation : opened.validation) check(validation);
}

// Sets what depends on the tables of numbers.
void fit_numbers(config::Resolved& resolved, const DataFiles& opened) {
  const config::Model& m = resolved.settings.model;
  const bool classes = config::objective(m) == config::Objective::classes;
  const data::NumberTable& train = *opened.train[0].file.numbers;
  const int64_t last = classes || m.outputs == 0 ? 1 : m.outputs;  // columns that are not features
  if (train.columns() <= last)
    throw base::UserError("data", "\"{}\" has {} columns; the last {} is what is learnt, those before it are features",
                          train.path().string(), train.columns(), last == 1 ? "one" : fmt::format("{}", last));
  int64_t outputs = last;
  if (classes) outputs = std::max<int64_t>({train.require_classes(train.columns() - 1, 0), m.outputs, 2});
  config::fill_from_numbers(resolved, train.columns() - last, outputs);
  for (const Opened& validation : opened.validation)
    if (const data::NumberTable& table = *validation.file.numbers; table.columns() != train.columns())
      throw base::UserError("data", "\"{}\" has {} columns, \"{}\" {}; they must be the same", train.path().string(),
                            train.columns(), table.path().string(), table.columns());
}

// "" if all conversations are complete.
std::string note_of(const samples::ConversationSamples& samples, const data::Conversations& all) {
  if (samples.dropped() == 0 && samples.cut() == 0) return "";
  return fmt::format(
      "\"{}\": of {} conversations {} are left out and {} cut, since they are longer than train.sequence",
      all.path().string(), all.size(), samples.dropped(), samples.cut());
}

std::string note_of(const samples::PreferenceSamples& samples, const data::Preferences& all) {
  if (samples.dropped() == 0) return "";
  return fmt::format("\"{}\": of {} pairs {} are left out, since they are longer than train.sequence",
                     all.path().string(), all.pairs().size(), samples.dropped());
}

// Opens all image files as one set.
Opened open_images(const std::vector<std::filesystem::path>& paths, const std::string& labels, images::LabelKind kind,
                   DataRole role, DataIdentity& identity) {
  Opened opened;
  const images::Use use = role == DataRole::train ? images::Use::train : images::Use::evaluate;
  opened.file.images = std::make_shared<const images::ImageSet>(paths, labels, use, kind);
  for (const images::ImageFile& file : opened.file.images->files())
    identity.push_back({role, file.path().string(), file.fingerprint()});
  return opened;
}

// Sets what depends on the images.
void fit_images(config::Resolved& resolved, const DataFiles& opened) {
  const images::ImageSet& train = *opened.train[0].file.images;
  const bool given = resolved.origin("model.outputs").given();
  const bool fields = train.label_kind() == images::LabelKind::fields,
             numbers = fields || train.label_kind() == images::LabelKind::numbers;
  config::fill_from_images(resolved,
                           {.channels = train.channels(),
                            .depth = train.depth(),
                            .height = train.height(),
                            .width = train.width(),
                            .dtype = train.dtype() == tensor::DType::u8 ? "uint8" : "fp32"},
                           numbers ? train.numbers() : train.classes(), numbers);
  if (!given) train.require_all_classes(resolved.settings.model.outputs);
  for (const Opened& validation : opened.validation) {
    const images::ImageSet& set = *validation.file.images;
    if (set.size_text() != train.size_text())
      throw base::UserError("images", "validation images are {}, but training images are {}: \"{}\"", set.size_text(),
                            train.size_text(), set.files()[0].path().string());
    if (set.numbers() != train.numbers())
      throw base::UserError("images", "validation images have {} {}, but training images have {}: \"{}\"",
                            set.numbers(), fields ? "channels of fields" : "numbers each", train.numbers(),
                            set.files()[0].labels_path().string());
  }
}

void open_image_files(const config::Settings& s, DataFiles& files) {
  const images::LabelKind kind = samples::label_kind(s.model);
  std::vector<std::filesystem::path> paths;
  for (const config::DataSource& source : s.data.train) {
    if (source.weight != s.data.train[0].weight)
      throw base::UserError("config",
                            "data.train: images are one set, of which each is seen once in an epoch; leave out "
                            "the weight {} of \"{}\"",
                            source.weight, source.path);
    paths.emplace_back(source.path);
  }
  files.train.push_back(open_images(paths, s.data.train_labels, kind, DataRole::train, files.identity));
  if (s.data.validation.size() > 1 && !s.data.validation_labels.empty())
    throw base::UserError("config",
                          "data.validation_labels has the labels of one file, but data.validation names {}; name one",
                          s.data.validation.size());
  for (const config::ValidationFile& file : s.data.validation)
    files.validation.push_back(
        open_images({file.path}, s.data.validation_labels, kind, DataRole::validation, files.identity));
}

}  // namespace

DataFiles open_data_files(const config::Resolved& resolved) {
  config::require_data(resolved);
  const config::Settings& s = resolved.settings;
  DataFiles files;
  if (models::reads_images(s.model)) {
    open_image_files(s, files);
    return files;
  }
  CommonTokenizer tokenizer;
  std::optional<ChatFormat> chat;
  if (config::learns_conversations(s.data)) chat = chat_format(s);
  for (const config::DataSource& source : s.data.train) {
    files.train.push_back(open(s, source.path, s.data.train_labels, DataRole::train, chat, files.identity));
    files.train.back().file.weight = source.weight;
    tokenizer.add(files.train.back());
  }
  if (s.data.validation.size() > 1 && samples::has_labels(s.model))
    throw base::UserError("config",
                          "data.validation has {} files, and data.validation_labels is that of one; name one file",
                          s.data.validation.size());
  for (const config::ValidationFile& file : s.data.validation) {
    files.validation.push_back(
        open(s, file.path, s.data.validation_labels, DataRole::validation, chat, files.identity));
    tokenizer.add(files.validation.back());
  }
  files.tokenizer_json = chat ? chat->json : tokenizer.json();
  files.tokenizer_path = chat ? chat->path : tokenizer.path();
  if (chat) files.chat_template = chat->chat->name;
  if (!files.tokenizer_json.empty())
    files.identity.insert(files.identity.begin(), {DataRole::tokenizer, files.tokenizer_path.string(),
                                                   data::tokenizer_fingerprint(files.tokenizer_json)});
  return files;
}

Corpus make_corpus(config::Resolved& resolved, const DataFiles& opened) {
  const config::Settings& s = resolved.settings;
  Corpus corpus;
  corpus.identity = opened.identity;
  corpus.tokenizer_json = opened.tokenizer_json;
  require_tokenizer_of_samples(s, opened.tokenizer_json);
  if (models::reads_tokens(s.model))
    fit_tokens(resolved, opened);
  else if (models::reads_images(s.model))
    fit_images(resolved, opened);
  else
    fit_numbers(resolved, opened);
  std::vector<samples::DataFile> files;
  for (const Opened& train : opened.train) files.push_back(train.file);
  if (!opened.chat_template.empty()) config::fill_chat_template(resolved, opened.chat_template);
  corpus.train = samples::training_samples(s, files);
  if (const auto* packed = dynamic_cast<const samples::ConversationSamples*>(corpus.train.get()))
    corpus.note = note_of(*packed, *files[0].conversations);
  if (const auto* pairs = dynamic_cast<const samples::PreferenceSamples*>(corpus.train.get()))
    corpus.note = note_of(*pairs, *files[0].preferences);
  if (const auto* rollouts = dynamic_cast<const samples::RolloutSamples*>(corpus.train.get());
      rollouts && rollouts->dropped() > 0)
    corpus.note = fmt::format("\"{}\": of {} prompts {} are left out, since they are longer than train.sequence",
                              files[0].prompts->path().string(), files[0].prompts->list().size(), rollouts->dropped());
  for (size_t i = 0; i < opened.validation.size(); ++i) {
    if (const auto& prompts = opened.validation[i].file.prompts) {
      corpus.validation_prompts.push_back(prompts);
      continue;
    }
    corpus.validation.push_back(
        {s.data.validation[i].domain, samples::evaluation_samples(s, opened.validation[i].file, s.train.sequence)});
  }
  return corpus;
}

Corpus open_corpus(config::Resolved& resolved) {
  return make_corpus(resolved, open_data_files(resolved));
}

void complete_from_data(config::Resolved& resolved) {
  const std::vector<std::string> open = config::sizes_of_data(resolved);
  if (open.empty()) return;
  if (resolved.settings.data.train.empty() && !models::reads_tokens(resolved.settings.model))
    throw base::UserError("config", "data.train is missing, which determines {}", fmt::join(open, ", "));
  open_corpus(resolved);
}

}  // namespace kintsugi::train
