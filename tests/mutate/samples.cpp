#include "tests/mutate/samples.h"

#include <fmt/format.h>

#include <cstring>
#include <fstream>

#include "kintsugi/base/file.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/data/prepare.h"
#include "kintsugi/exchange/export_folder.h"
#include "kintsugi/images/test_images.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"
#include "kintsugi/text/pipeline_goldens_test.h"
#include "kintsugi/text/small_sentencepiece_test.h"
#include "kintsugi/text/tokenizer.h"
#include "kintsugi/train/corpus.h"
#include "kintsugi/train/metrics.h"
#include "kintsugi/train/run_end.h"
#include "kintsugi/train/trainer.h"
#include "kintsugi/train/worlds.h"
#include "tests/paths.h"

namespace kintsugi::tests {

namespace fs = std::filesystem;

void write(const fs::path& path, std::string_view content) {
  if (path.has_parent_path()) fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary).write(content.data(), static_cast<std::streamsize>(content.size()));
}

static std::string text(int sample) {
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

static void make_tokens(const std::string& tokenizer, int sample) {
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

static void make_tokenizer(const std::string& kind, int sample) {
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
static void make_golden(std::string_view name) {
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
static void make_pair(const char* vocabulary, const char* merges, int sample) {
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

void make_features(int sample) {
  std::string rows = "a,b,\"y\",kind\n";
  for (int i = 0; i < 12; ++i)
    rows += fmt::format("{},{}e-1,{},\"k, {}\"\n", i * i % 7, i * 3 % 5, 2 * i + sample, i % (2 + sample));
  write("features.csv", rows);
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

}  // namespace kintsugi::tests
