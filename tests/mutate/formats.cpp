#include "tests/mutate/formats.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <cstring>
#include <fstream>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/checksum.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/tensor_files.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/config/resume.h"
#include "kintsugi/data/prepare.h"
#include "kintsugi/data/token_file.h"
#include "kintsugi/data/token_summary.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/images/image_file.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/probe/bayesian_ridge.h"
#include "kintsugi/probe/logistic.h"
#include "kintsugi/probe/pca.h"
#include "kintsugi/probe/table.h"
#include "kintsugi/report/run_page.h"
#include "kintsugi/report/watch_frame.h"
#include "kintsugi/simulate/cluster.h"
#include "kintsugi/tasks/documents.h"
#include "kintsugi/tasks/group.h"
#include "kintsugi/text/tokenizer.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/metrics.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"
#include "tests/markup.h"
#include "tests/mutate/samples.h"
#include "tests/paths.h"

namespace kintsugi::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStep = "run/step_00000003";

// Accepted input must be readable after we write it.
template <typename F>
void read_back(std::string_view what, F&& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    throw base::InternalError("mutate", "{} is not read back: {}", what, error.what());
  }
}

// --- reading

void read_config() {
  config::Resolved resolved = config::load("run.toml", models::catalog(), {}, 2);
  if (!resolved.settings.data.train.empty()) train::open_corpus(resolved);
  read_back("run.toml", [&] { config::saved_text(config::to_toml(resolved), models::catalog()); });
}

void read_cluster() {
  simulate::read_cluster("cluster.toml");
}

void read_saved_config() {
  config::resume_with(config::load_saved("run/config.toml", models::catalog()),
                      config::load("run.toml", models::catalog(), {}, 2));
}

void read_tokenizer() {
  const auto tokenizer = text::load_tokenizer(".");
  const std::string json = tokenizer->to_json();
  read_back("tokenizer.json", [&] { text::parse_tokenizer(json, "again"); });
  const bool chars = tokenizer->kind() == "chars";  // which refuses characters that it has not seen
  tokenizer->decode(
      tokenizer->encode(chars ? "Line 12 of a text" : "Line 12 of a  text, 'tis <mask>é.\n<|endoftext|>"));
}

void prepare_from(const std::string& input, const std::string& field, const std::string& tokenizer) {
  prepare(input, field, tokenizer, "out");
  read_back("a token file", [] { data::TokenFile("out/train"); });
}
void read_jsonl() {
  prepare_from("text.jsonl", "text", "chars");
}
void read_text() {
  prepare_from("text.txt", "", "bpe:260");
}

void read_tokens() {
  config::Resolved resolved = config::load("run.toml", models::catalog(), {}, 1);
  const train::Corpus corpus = train::open_corpus(resolved);
  samples::BatchMemory batch(1, corpus.train->parts());
  for (uint64_t sample = 0; sample < 20; ++sample) corpus.train->fill(sample, batch.view());
  for (const train::ValidationSamples& file : corpus.validation)
    for (uint64_t sample = 0; sample < file.samples->num_samples(); ++sample) file.samples->fill(sample, batch.view());
}

void read_images(const fs::path& path, const fs::path& labels) {
  const images::ImageFile file(path, labels);
  std::vector<std::byte> image(static_cast<size_t>(file.bytes_per_image()));
  for (int64_t i = 0; i < file.size(); ++i) {
    file.read(i, image);
    if (file.label(i) < 0 || file.label(i) >= file.classes())
      throw base::InternalError("mutate", "a label of {}", file.label(i));
  }
}
void read_cifar() {
  read_images("images.bin", "");
}
void read_idx() {
  read_images("x-images-idx3", "");
}
void read_npy() {
  read_images("images.npy", "labels.npy");
}

void read_index() {
  checkpoint::CheckpointReader(kStep).verify();
}

void read_safetensors() {
  const checkpoint::TensorFiles files(".");
  unsigned sum = 0;
  for (const auto& [name, tensor] : files.tensors())
    tensor.for_each_block([&](std::span<const std::byte> block) {
      for (const std::byte byte : block) sum += static_cast<unsigned>(byte);
    });
  base::require(sum < UINT32_MAX, "mutate", "the sum is {}", sum);
}

void read_hugging_face() {
  const exchange::FolderReader reader(".");
  for (const std::string& name : reader.names()) {
    std::vector<std::byte> bytes(static_cast<size_t>(reader.type(name).bytes()));
    reader.read({.name = name, .box = {}, .flat = {}}, reader.type(name).dtype, bytes);
  }
  read_back("config.toml", [&] { config::saved_text(exchange::config_of(reader), models::catalog()); });
  read_back("config.json", [&] {
    exchange::read_config("again", exchange::write_config(reader.config().model, reader.config().dtype));
  });
}

void read_checkpoint() {
  const config::Parallel layout = evaluate::read_layout("evaluate", {}, 1).settings.parallel;
  const auto world = comm::self_world();
  evaluate::CheckpointModel model(kStep, layout, *world);
  model.load(models::build_evaluation(model.settings(), 1, 8));
}

void read_task() {
  for (const tasks::Task& task : tasks::parse_group(base::read_file("task.json"), "task.json").tasks)
    tasks::read_documents(task, "questions.jsonl");
}

void read_best() {
  checkpoint::read_best("run");
}

void read_end() {
  const std::optional<train::RunEnd> end = train::read_end("run");
  base::require(end && end->step >= 0, "mutate", "no end");
  train::write_end("run", *end);
}

void read_metrics() {
  const std::vector<report::ReportRun> runs = {
      {.name = "run", .metrics = report::read_metrics("run/metrics.jsonl"), .not_planned = "damaged"}};
  const std::string fault = markup_fault(report::run_page(runs, "mutate"));
  base::require(fault.empty(), "report", "{}", fault);
  report::watch_frame(
      {.name = "run", .metrics = &runs[0].metrics, .steps = 3, .ranks = {}, .saved_step = {}, .note = {}}, {});
  train::MetricsFile("run/metrics.jsonl", 2);
}

void read_profile() {
  const std::vector<report::ReportRun> runs = {
      {.name = "run",
       .metrics = {},
       .not_planned = "not read",
       .measured = report::ProfiledStep{
           .profile = profile::step_profile_of(base::read_file("run/profile.json"), "run/profile.json")}}};
  const std::string fault = markup_fault(report::run_page(runs, "mutate"));
  base::require(fault.empty(), "report", "{}", fault);
}

// --- checksums

// The hexadecimal digits after a key, if present.
void set_hex(std::string& json, std::string_view key, uint64_t value) {
  const std::string quoted = fmt::format("\"{}\": \"", key);
  const size_t at = json.find(quoted);
  if (at != json.npos && json.size() >= at + quoted.size() + 16)
    json.replace(at + quoted.size(), 16, fmt::format("{:016x}", value));
}

void fix_tokens() {
  std::string json = base::read_file("corpus/train.json");
  const std::string bin = base::read_file("corpus/train.bin"), idx = base::read_file("corpus/train.idx");
  set_hex(json, "checksum", XXH3_64bits(bin.data(), bin.size()));
  set_hex(json, "index_checksum", XXH3_64bits(idx.data(), idx.size()));
  write("corpus/train.json", json);
}

void fix_index() {
  const fs::path folder = kStep;
  const std::string text = base::read_file(folder / checkpoint::kIndexFile);
  write(folder / checkpoint::kIndexChecksumFile, checkpoint::checksum_text(checkpoint::checksum_of(text)) + "\n");
}

// What precedes the data, as far as the file contains it.
std::string_view head_of(std::string_view file) {
  uint64_t length = 0;
  if (file.size() < sizeof length) return file;
  std::memcpy(&length, file.data(), sizeof length);
  return length < file.size() - sizeof length ? file.substr(0, sizeof length + length) : file;
}

// Updates the index for all files, including damaged pieces if the file can be opened.
void fix_checkpoint() {
  const fs::path folder = kStep;
  checkpoint::Index index;
  try {
    index = checkpoint::parse_index("index.json", base::read_file(folder / checkpoint::kIndexFile));
  } catch (const base::UserError&) {
    return fix_index();
  }
  for (auto& [name, file] : index.files) {
    if (!fs::exists(folder / name)) continue;
    const std::string content = base::read_file(folder / name);
    const bool tensors = name.ends_with(".safetensors");
    file = {content.size(), checkpoint::checksum_of(tensors ? head_of(content) : std::string_view(content))};
    try {
      if (!tensors) continue;
      const checkpoint::SafetensorsFile opened(folder / name);
      for (auto& [tensor, stored] : index.tensors)
        for (auto& piece : stored.pieces)
          if (piece.file == name && opened.has(piece.key))
            piece.checksum = checkpoint::checksum_of(opened.at(piece.key));
    } catch (const base::UserError&) {
    }
  }
  write(folder / checkpoint::kIndexFile, checkpoint::print_index(index));
  fix_index();
}

// --- features of linear probes

void read_features() {
  const probe::CsvTable table = probe::read_csv("features.csv");
  const probe::Classes classes = probe::classes_of(table, table.column("kind"));
  const probe::Matrix x = table.numbers({table.column("a"), table.column("b")});
  const std::vector<double> y = table.numbers({table.column("y")}).values;
  if (x.rows < 2) throw base::UserError("probe", "too few rows");
  probe::fit_bayesian_ridge(x, y);
  probe::fit_pca(x, 1);
  probe::fit_logistic(probe::fit_standardizer(x).apply(x), classes.labels, classes.names.size(), {});
}

void read_feature_array() {
  const probe::Matrix x = probe::read_npy("features.npy");
  const probe::CsvTable labels = probe::read_csv("labels.csv");
  if (x.rows != labels.rows.size()) throw base::UserError("probe", "another number of rows");
  probe::fit_bayesian_ridge(x, labels.numbers({0}).values);
}

}  // namespace

std::span<const Format> formats() {
  constexpr Content kText = Content::text, kBinary = Content::binary;
  constexpr const char* kPrepare = "prepare text.txt --tokenizer tokenizer.json --output out --force --threads 1";
  constexpr const char* kPrepareHere = "prepare text.txt --tokenizer . --output out --force --threads 1";
  constexpr const char* kResume = "train run.toml --resume";
  static const std::vector<Format> kFormats = {
      {"run.toml", make_config, {{"run.toml", kText}}, read_config, {"check run.toml"}},
      {"config.toml", make_run, {{"run/config.toml", kText}}, read_saved_config, {kResume, "report run", "watch run"}},
      {"bpe", make_bpe, {{"tokenizer.json", kText}}, read_tokenizer, {kPrepare}},
      {"character_bpe", make_character_bpe, {{"tokenizer.json", kText}}, read_tokenizer, {kPrepare}},
      {"unigram", make_unigram, {{"tokenizer.json", kText}}, read_tokenizer, {kPrepare}},
      {"wordpiece", make_word_piece, {{"tokenizer.json", kText}}, read_tokenizer, {kPrepare}},
      {"tokenizer.model", make_sentencepiece, {{"tokenizer.model", kBinary}}, read_tokenizer, {kPrepareHere}},
      {"bytes", make_bytes, {{"tokenizer.json", kText}}, read_tokenizer, {kPrepare}},
      {"chars", make_chars, {{"tokenizer.json", kText}}, read_tokenizer, {kPrepare}},
      {"encoder.json",
       make_encoder,
       {{"encoder.json", kText}, {"vocab.bpe", kText}, {"added_tokens.json", kText}},
       read_tokenizer,
       {kPrepareHere}},
      {"vocab.json",
       make_vocab,
       {{"vocab.json", kText}, {"merges.txt", kText}, {"added_tokens.json", kText}},
       read_tokenizer,
       {kPrepareHere}},
      {"jsonl",
       make_jsonl,
       {{"text.jsonl", kText}},
       read_jsonl,
       {"prepare text.jsonl --field text --tokenizer bytes --output out --force --threads 1"}},
      {"text",
       make_text,
       {{"text.txt", kText}},
       read_text,
       {"prepare text.txt --tokenizer chars --output out --force --threads 1"}},
      {"tokens",
       make_config,
       {{"corpus/train.bin", kBinary},
        {"corpus/train.idx", kBinary},
        {"corpus/train.json", kText},
        {"corpus/tokenizer.json", kText}},
       read_tokens,
       {"show corpus/train", "check run.toml"},
       fix_tokens},
      {"cluster.toml", make_cluster, {{"cluster.toml", kText}}, read_cluster, {"plan run.toml --cluster cluster.toml"}},
      {"features.csv",
       make_features,
       {{"features.csv", kText}},
       read_features,
       {"probe features.csv --target y --task regress --folds 2",
        "probe features.csv --columns a b --target kind --task classify"}},
      {"features.npy",
       make_feature_array,
       {{"features.npy", kBinary}},
       read_feature_array,
       {"probe features.npy --labels labels.csv --task regress --folds 2"}},
      {"csv", make_table, {{"pairs.csv", kText}}, read_tokens, {"check run.toml"}},
      {"cifar", make_cifar, {{"images.bin", kBinary}}, read_cifar, {"show images.bin"}},
      {"idx", make_idx, {{"x-images-idx3", kBinary}, {"x-labels-idx1", kBinary}}, read_idx, {"show x-images-idx3"}},
      {"npy",
       make_npy,
       {{"images.npy", kBinary}, {"labels.npy", kBinary}},
       read_npy,
       {"show images.npy --labels labels.npy"}},
      {"index.json",
       make_run,
       {{"run/step_00000003/index.json", kText}, {"run/step_00000003/index.xxh3", kText}},
       read_index,
       {"show run/step_00000003 --verify", kResume},
       fix_index},
      {"safetensors", make_safetensors, {{"model.safetensors", kBinary}}, read_safetensors, {"show model.safetensors"}},
      {"safetensors.index.json",
       make_indexed_safetensors,
       {{"model.safetensors.index.json", kText}, {"part-1.safetensors", kText}},
       read_safetensors,
       {"show ."}},
      {"checkpoint",
       make_run,
       {{"run/step_00000003/config.toml", kText},
        {"run/step_00000003/tokenizer.json", kText},
        {"run/step_00000003/rank_00000.safetensors", kBinary},
        {"run/step_00000003/index.json", kText}},
       read_checkpoint,
       {"generate run/step_00000003 --length 2 --prompt a", "evaluate run/step_00000003", kResume},
       fix_checkpoint},
      {"config.json", make_hugging_face, {{"config.json", kText}}, read_hugging_face, {"import . imported", "show ."}},
      {"hugging_face",
       make_hugging_face,
       {{"model.safetensors", kBinary}, {"config.json", kText}},
       read_hugging_face,
       {"import . imported", "evaluate . --data corpus/train --sequence 8"}},
      {"task.json",
       make_task,
       {{"task.json", kText}, {"questions.jsonl", kText}},
       read_task,
       {"evaluate run/step_00000003 --task task.json --data questions.jsonl"}},
      {"best.json", make_run, {{"run/best.json", kText}}, read_best, {kResume}},
      {"metrics.jsonl", make_run, {{"run/metrics.jsonl", kText}}, read_metrics, {kResume, "report run", "watch run"}},
      {"ended.json", make_ended_run, {{"run/ended.json", kText}}, read_end, {kResume, "report run", "watch run"}},
      {"profile.json", make_run, {{"run/profile.json", kText}}, read_profile, {kResume, "report run"}},
  };
  return kFormats;
}

}  // namespace kintsugi::tests
