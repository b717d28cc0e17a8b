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
#include "kintsugi/exchange/export_folder.h"
#include "kintsugi/exchange/open_model.h"
#include "kintsugi/images/image_file.h"
#include "kintsugi/images/test_images.h"
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
#include "kintsugi/text/pipeline_goldens_test.h"
#include "kintsugi/text/small_sentencepiece_test.h"
#include "kintsugi/text/tokenizer.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/metrics.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"
#include "tests/markup.h"
#include "tests/paths.h"

namespace kintsugi::tests {
namespace {

namespace fs = std::filesystem;

constexpr const char* kStep = "run/step_00000003";

void write(const fs::path& path, std::string_view content) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

// Accepted input must be readable after we write it.
template <typename F>
void read_back(std::string_view what, F&& f) {
  try {
    f();
  } catch (const base::UserError& error) {
    throw base::InternalError("mutate", "{} is not read back: {}", what, error.what());
  }
}

// --- samples

std::string text(int sample) {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text += fmt::format("Line {} of a text{} that a model can learn, 'tis {}é.\n", i, sample == 0 ? "" : " as well",
                        i * i % 97);
  return text;
}

void make_jsonl(int sample) {
  std::string lines;
  for (int i = 0; i < 20; ++i)
    lines += fmt::format(
        "{{\"title\": {}, \"text\": \"{}\\u00e9 and \\\"{}\\\" \\ud83d\\ude00 é\", \"more\": [{{\"a\": null}}, "
        "{}.5e1]}}\n",
        i, sample == 0 ? "one" : "two", i, i);
  write("text.jsonl", lines);
}

void make_text(int sample) {
  write("text.txt", text(sample));
}

void prepare(const std::string& input, const std::string& field, const std::string& tokenizer, const fs::path& output) {
  data::PrepareOptions options;
  options.inputs = {input};
  options.field = field;
  options.tokenizer = tokenizer;
  options.output = output;
  options.threads = 1;
  options.force = true;
  data::prepare(options);
}

void make_tokens(const std::string& tokenizer, int sample) {
  make_text(sample);
  prepare("text.txt", "", tokenizer, "corpus");
}

void make_cifar(int sample) {
  write("images.bin", images::cifar_file(sample == 0 ? std::vector<int>{1, 9} : std::vector<int>{0, 40}, sample + 1));
}

void make_idx(int sample) {
  const auto count = static_cast<uint32_t>(2 + sample);
  write("x-images-idx3", images::idx_file({count, 3, 4}, images::test_pixels(0, 12 * count)));
  write("x-labels-idx1", images::idx_file({count}, std::string(count, '\2')));
}

void make_npy(int sample) {
  write("images.npy", sample == 0 ? images::npy_file("|u1", "(2, 3, 8, 5)", images::test_pixels(0, 240))
                                  : images::npy_file("<f4", "(3, 2, 5)", images::test_pixels(0, 120)));
  write("labels.npy", sample == 0 ? images::npy_file("<i4", "(2,)", std::string{1, 0, 0, 0, 0, 0, 0, 0})
                                  : images::npy_file("|u1", "(3,)", std::string{2, 0, 1}));
}

void make_config(int sample) {
  make_tokens("bytes", sample);
  if (sample == 0)
    return write("run.toml",
                 "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\nvalidation = "
                 "\"corpus/validation\"\n[train]\nfolder = \"run\"\nsteps = 3\nglobal_batch = 2\nsequence = "
                 "16\nevaluate_batches = 1\nevaluate_every = 1\nprompts = [\"a\", \"\"]\nsample_length = "
                 "3\n[parallel]\nthreads = 1\n"
                 "[checkpoint]\nevery = 1\nkeep = 9\n");
  write("run.toml",
        "# another run\n[model]\nfamily = 'llama'\nlayers = 2\nembed = 0x20\nheads = 4\nkv_heads = 2\ndropout = 0.1\n"
        "[data]\ntrain = [{path = \"corpus/train\", weight = 2.5}, {path = \"corpus/validation\", weight = 1}]\n"
        "validation = 'corpus/validation'\nreset_at_document = true\n[train]\nfolder = \"\"\"run\"\"\"\nsteps = "
        "3\nglobal_batch = 4\nmicro_batch = 2\n"
        "sequence = 16\nlearning_rate = 1e-2\nbetas = [0.9, 0.95]\nwarmup_steps = 1\ndtype = \"bf16\"\n"
        "evaluate_batches = 1\nevaluate_every = 2\n[parallel]\nthreads = 1\n[checkpoint]\nevery = 1\nkeep = 2\n");
}

void make_table(int sample) {
  std::string rows = sample == 0 ? "first,second,class\n" : "";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{}, {:.3f},{}\n", i, i / 7.0 - 2, i % 3);
  write("pairs.csv", rows);
  write("run.toml",
        fmt::format("[model]\nfamily = \"mlp\"\nobjective = \"{}\"\n[data]\ntrain = \"pairs.csv\"\nvalidation "
                    "= \"pairs.csv\"\n[train]\nsteps = 3\nglobal_batch = 2\n[parallel]\nthreads = 1\n",
                    sample == 0 ? "classes" : "numbers"));
}

void make_cluster(int sample) {
  write(
      "cluster.toml",
      fmt::format("[cluster]\nname = \"mine\"\nnodes = 2\ndevices_per_node = {}\n[device]\nunits = 108\nmemory = \"80 "
                  "GB\"\nmemory_bandwidth = \"2039 GB/s\"\nspread = 0.01\nwatts = \"400 W\"\n[peak]\nfp32 = \"19.5 "
                  "TFLOP/s\"\nbf16 = \"0.3 PFLOP/s\"\n[products]\nshare = 0.8\ndepth = 96\nstart = \"5 us\"\ntiles = "
                  "[\"256x128\", \"64x64\"]\n[attention]\nforward = 0.6\nbackward = 0.5\n[node]\nbandwidth = \"230 "
                  "GB/s\"\nstart = \"40 us\"\nstep = \"3.4 us\"\n[network]\nbandwidth = \"200 Gb/s\"\nstart = \"40 "
                  "us\"\nstep = \"14 us\"\ntopology = \"fat tree\"\ntaper = 0.5\nnodes_per_part = 16\n",
                  sample == 0 ? 1 : 4));
  write("run.toml",
        "[model]\nlayers = 1\nembed = 16\nheads = 2\nvocab = 64\n[train]\nsequence = 16\nglobal_batch = 2\n"
        "[parallel]\ndata = 2\nthreads = 1\n");
}

void make_run(int sample) {
  make_config(sample);
  struct Silent : train::Observer {
    void note(const std::string&) override {}
    void step(const train::Metrics&, int64_t) override {}
  } observer;
  train::TrainOptions options = {.config = config::load("run.toml", models::catalog(), {}, 1)};
  const auto worlds = train::make_worlds(options.config.settings);
  train::train(std::move(options), worlds, observer);
}

void make_ended_run(int sample) {
  make_run(sample);
  train::write_end("run", sample % 2 == 0 ? train::RunEnd{.step = 3, .stop = train::Stop::signal}
                                          : train::RunEnd{.error = "[train] step 3: \"it\" failed"});
}

void make_tokenizer(const std::string& kind, int sample) {
  make_tokens(kind, sample);
  fs::rename("corpus/tokenizer.json", "tokenizer.json");
  fs::remove_all("corpus");
}
void make_bpe(int sample) {
  make_tokenizer("bpe:300", sample);
  if (sample == 0) return;
  // As written by other programs.
  std::string json = base::read_file("tokenizer.json");
  const auto replace = [&](std::string_view from, std::string_view to) {
    const size_t at = json.find(from);
    base::require(at != json.npos, "mutate", "no {} in tokenizer.json", from);
    json.replace(at, from.size(), to);
  };
  replace("\"normalizer\": null",
          R"("normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "NFKC"}]})");
  replace("\"pre_tokenizer\": {",
          R"("pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": )"
          R"("(?i:'s|'t)|\\p{N}{1,3}| ?[^\\s\\p{L}]+"}, "behavior": "Isolated", "invert": false}, )"
          R"({"type": "Digits", "individual_digits": true}, {)");
  replace("\"use_regex\": true\n }", "\"use_regex\": false}]}");
  write("tokenizer.json", json);
}
void make_bytes(int sample) {
  make_tokenizer("bytes", sample);
}
void make_chars(int sample) {
  make_tokenizer("chars", sample);
}

// A tokenizer.json as written by Hugging Face's library.
void make_golden(std::string_view name) {
  for (const auto& golden : text::kGoldens)
    if (golden.name == name) return write("tokenizer.json", golden.json);
  throw base::InternalError("mutate", "there is no tokenizer {}", name);
}
void make_character_bpe(int sample) {
  make_text(sample);
  make_golden(sample == 0 ? "Llama" : "Suffix");
}
void make_unigram(int sample) {
  make_text(sample);
  make_golden(sample == 0 ? "Unigram" : "UnigramBytes");
}
void make_word_piece(int sample) {
  make_text(sample);
  make_golden(sample == 0 ? "Bert" : "Digits");  // the second is a WordLevel
}
void make_sentencepiece(int sample) {
  make_text(sample);
  write("tokenizer.model", sample == 0 ? text::small_sentencepiece(2, true) : text::small_sentencepiece(1, false));
}

// GPT-2's two files, from a trained bpe.
void make_pair(const char* vocabulary, const char* merges, int sample) {
  make_tokenizer("bpe:300", sample);
  const std::string json = base::read_file("tokenizer.json");
  const auto part = [&](std::string_view key, char open, char close) {
    const size_t begin = json.find(open, json.find(key));
    return json.substr(begin, json.find(std::string("\n  ") + close, begin) + 4 - begin);
  };
  write(vocabulary, part("\"vocab\":", '{', '}'));
  std::string list = part("\"merges\":", '[', ']'), lines = "#version: 0.2\n";
  for (size_t at = 0; (at = list.find("\n   \"", at)) != list.npos; ++at)
    lines += list.substr(at + 5, list.find('"', at + 5) - at - 5) + "\n";
  write(merges, lines);
  write("added_tokens.json", "{\"<mask>\": 300, \"<pad>\": 301}");
  fs::remove("tokenizer.json");
}
void make_encoder(int sample) {
  make_pair("encoder.json", "vocab.bpe", sample);
}
void make_vocab(int sample) {
  make_pair("vocab.json", "merges.txt", sample);
}

void make_safetensors(int sample) {
  make_run(sample);
  fs::rename(fs::path(kStep) / "rank_00000.safetensors", "model.safetensors");
  for (const char* other : {"run", "corpus"}) fs::remove_all(other);
}

void make_indexed_safetensors(int sample) {
  make_safetensors(sample);
  std::string map;
  const checkpoint::TensorFiles files("model.safetensors");
  for (const auto& [name, view] : files.tensors())
    map += fmt::format("{}\n  \"{}\": \"part-1.safetensors\"", map.empty() ? "" : ",", name);
  write("model.safetensors.index.json", "{\"metadata\": {\"total_size\": 1}, \"weight_map\": {" + map + "}}\n");
  fs::rename("model.safetensors", "part-1.safetensors");
}

// The trained model as a Hugging Face folder.
void make_hugging_face(int sample) {
  make_run(sample);
  exchange::export_folder({.model = kStep, .folder = "folder", .dtype = {}});
  for (const auto& entry : fs::directory_iterator("folder")) fs::copy_file(entry.path(), entry.path().filename());
  for (const char* other : {"run", "folder"}) fs::remove_all(other);
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

void make_task(int sample) {
  make_run(sample);
  write("task.json",
        base::read_file(fs::path(source_folder()) / "tasks" / (sample == 0 ? "piqa.json" : "arc_easy.json")));
  std::string lines;
  for (int i = 0; i < 9; ++i)
    lines +=
        sample == 0
            ? fmt::format("{{\"goal\": \"a{}\", \"sol1\": \"b\", \"sol2\": \"c\\u00e9\", \"label\": {}}}\n", i, i % 2)
            : fmt::format(
                  "{{\"id\": \"{}\", \"question\": {{\"stem\": \"a\", \"choices\": [{{\"text\": \"b\", \"label\": "
                  "\"A\"}}, "
                  "{{\"text\": \"c\", \"label\": \"B\"}}]}}, \"answerKey\": \"B\"}}\n",
                  i);
  write("questions.jsonl", lines);
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

void make_features(int sample) {
  std::string rows = "a,b,\"y\",kind\n";
  for (int i = 0; i < 12; ++i)
    rows += fmt::format("{},{}e-1,{},\"k, {}\"\n", i * i % 7, i * 3 % 5, 2 * i + sample, i % (2 + sample));
  write("features.csv", rows);
}

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

void make_feature_array(int sample) {
  const std::string header =
      fmt::format("{{'descr': '<f{}', 'fortran_order': False, 'shape': (12, 2), }}", sample == 0 ? 4 : 8);
  std::string file = "\x93NUMPY";
  file += std::string("\x01\x00v\x00", 4);  // version 1.0, and a header of 118 bytes
  file += header + std::string(117 - header.size(), ' ') + "\n";
  std::string labels = "y\n";
  for (int i = 0; i < 24; ++i) {
    const double wide = i * i % 11;
    const auto narrow = static_cast<float>(wide);
    file += sample == 0 ? std::string(reinterpret_cast<const char*>(&narrow), 4)
                        : std::string(reinterpret_cast<const char*>(&wide), 8);
    if (i < 12) labels += fmt::format("{}\n", i % 5);
  }
  write("features.npy", file);
  write("labels.csv", labels);
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
