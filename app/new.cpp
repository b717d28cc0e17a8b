// One dial for a language model, its depth, as in nanochat (Karpathy 2025, scripts/base_train.py): everything else
// follows from it.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "app/print_entry.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/config/value.h"
#include "kintsugi/text/tokenizer.h"

namespace kintsugi::app {
namespace {

struct NewOptions {
  std::string name, data = "corpus";
  int64_t depth = 0, sequence = 2048, vocab = 0;
  double ratio = 10.5;
};

// What the depth determines.
struct Dial {
  int64_t width = 0, heads = 0;
  int64_t parameters = 0;  // matrices of the blocks and the head, to which the tokens are proportional
  int64_t tokens = 0, batch_tokens = 0, global_batch = 0, steps = 0;
  double learning_rate = 0;
};

constexpr int64_t kHeadDim = 128, kReferenceDepth = 12;
constexpr double kReferenceBatch = 524'288;  // tokens, at the reference depth
constexpr double kReferenceRate = 6e-4;      // of AdamW with that batch and width (Brown et al. 2020, table 2.1)

int64_t width_of(int64_t depth) {
  return (64 * depth + kHeadDim - 1) / kHeadDim * kHeadDim;
}

double scaled_parameters(int64_t depth, int64_t vocab) {
  const auto width = static_cast<double>(width_of(depth));
  return 12 * width * width * static_cast<double>(depth) + width * static_cast<double>(vocab);
}

double to_two_digits(double x) {
  const double unit = std::pow(10.0, std::floor(std::log10(x)) - 1);
  return std::round(x / unit) * unit;
}

Dial dial_of(const NewOptions& o) {
  Dial dial;
  dial.width = width_of(o.depth);
  dial.heads = dial.width / kHeadDim;
  const double parameters = scaled_parameters(o.depth, o.vocab),
               reference = scaled_parameters(kReferenceDepth, o.vocab);
  dial.parameters = std::llround(parameters);
  dial.tokens = std::llround(o.ratio * parameters);
  // The best batch grows with the tokens to the power of 0.383 (Bergsma et al. 2025, "Power lines").
  const double best = kReferenceBatch * std::pow(parameters / reference, 0.383);
  const auto batch_tokens = static_cast<int64_t>(std::exp2(std::round(std::log2(best))));
  dial.global_batch = std::max<int64_t>(1, batch_tokens / o.sequence);
  dial.batch_tokens = dial.global_batch * o.sequence;
  dial.steps = std::max<int64_t>(1, (dial.tokens + dial.batch_tokens / 2) / dial.batch_tokens);
  dial.learning_rate =
      to_two_digits(kReferenceRate * static_cast<double>(width_of(kReferenceDepth)) / static_cast<double>(dial.width) *
                    std::sqrt(static_cast<double>(dial.batch_tokens) / kReferenceBatch));
  return dial;
}

// The vocabulary of the data's tokenizer, or of one that is yet to be trained.
int64_t vocab_of(const NewOptions& o) {
  const std::filesystem::path path = std::filesystem::path(o.data) / "tokenizer.json";
  return std::filesystem::exists(path) ? text::load_tokenizer(path)->vocab_size() : 32'768;
}

std::string toml_of(const NewOptions& o, const Dial& d) {
  const std::string data = config::to_toml(std::string_view(o.data + "/train")),
                    validation = config::to_toml(std::string_view(o.data + "/validation")),
                    folder = config::to_toml(std::string_view("runs/" + o.name));
  const auto count = [](int64_t n) { return base::group_digits(n); };
  return fmt::format(
      "# Written by `kintsugi new {0} --depth {1}`. Every number follows from the depth; change any of them.\n"
      "# Matrices of the blocks and the head: {2} parameters; {3} tokens for each: {4} tokens.\n"
      "[model]\n"
      "family = \"qwen3\"            # rotary positions, RMS norms, normalized queries and keys\n"
      "layers = {1}\n"
      "embed = {5}                 # 64 per layer, rounded up to whole heads\n"
      "heads = {6}                   # of 128\n"
      "kv_heads = {6}\n"
      "head_dim = 128\n"
      "ffn = {7}                  # 4 embed\n"
      "gated = false\n"
      "activation = \"relu2\"\n"
      "tied = false\n"
      "context = {8}\n"
      "{9}\n"
      "[data]\n"
      "train = {10}\n"
      "validation = {11}\n\n"
      "[train]\n"
      "folder = {12}\n"
      "steps = {13}                 # {4} tokens / {14} per step\n"
      "global_batch = {15}            # {14} tokens, in proportion to all tokens to the power of 0.383\n"
      "sequence = {8}\n"
      "dtype = \"bf16\"\n"
      "learning_rate = {16:.2g}       # falls with the width, rises with the square root of the batch\n"
      "warmup_steps = {17}\n"
      "weight_decay = 0.1\n"
      "clip = 1.0\n"
      "evaluate_every = {18}\n\n"
      "[checkpoint]\n"
      "every = {18}\n",
      o.name, o.depth, count(d.parameters), o.ratio, count(d.tokens), d.width, d.heads, 4 * d.width, o.sequence,
      std::filesystem::exists(std::filesystem::path(o.data) / "tokenizer.json")
          ? ""
          : fmt::format("vocab = {}              # of the tokenizer: prepare --tokenizer bpe:{}\n", o.vocab, o.vocab),
      data, validation, folder, d.steps, count(d.batch_tokens), d.global_batch, d.learning_rate,
      std::clamp<int64_t>(d.steps / 20, 1, 40), std::clamp<int64_t>(d.steps / 4, 1, 250));
}

void require_name(const std::string& name) {
  const std::string_view allowed = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
  if (name.find_first_not_of(allowed) != name.npos || name.starts_with('.') || name.starts_with('-'))
    throw base::UserError("new", "{} is not a name of letters, digits, \".\", \"_\" and \"-\"", base::in_quotes(name));
}

void write_new(NewOptions o) {
  require_name(o.name);
  const std::filesystem::path path = o.name + ".toml";
  std::error_code error;
  if (std::filesystem::exists(path, error))
    throw base::UserError("new", "\"{}\" exists; choose another name, or remove it", path.string());
  if (o.vocab == 0) o.vocab = vocab_of(o);
  const Dial dial = dial_of(o);
  const std::string text = toml_of(o, dial);
  base::write_file_atomically(path, text);
  print_entry("file", path.string());
  print_entry("model", fmt::format("{} layers of {}, {} of attention; {} parameters in matrices and head", o.depth,
                                   dial.width, base::counted(dial.heads, "head"), base::group_digits(dial.parameters)));
  print_entry("training", fmt::format("{}: {} of {}", base::counted(dial.tokens, "token"),
                                      base::counted(dial.steps, "step"), base::group_digits(dial.batch_tokens)));
  print_entry("next", fmt::format("kintsugi check {}", path.string()));
}

}  // namespace

void add_new(Command& kintsugi) {
  const Verb verb = kintsugi.add_verb("new", "Writes the configuration of a language model from its depth");
  const auto o = std::make_shared<NewOptions>();
  verb.text("name", o->name, "Name of the run: writes NAME.toml").required();
  verb.integer("--depth", o->depth, {1, 200}, "Number of layers; the width is 64 times as much").required();
  verb.text("--data", o->data, "Folder with the token files train and validation, and their tokenizer").show_default();
  verb.integer("--sequence", o->sequence, {8, 1'000'000}, "Tokens per sample").show_default();
  verb.integer("--vocab", o->vocab, {2, 10'000'000}, "Size of the vocabulary; default: the data's, or 32,768");
  verb.number("--ratio", o->ratio, {0, 10'000, true}, "Training tokens per parameter").show_default();
  verb.run([o] { write_new(*o); });
}

}  // namespace kintsugi::app
