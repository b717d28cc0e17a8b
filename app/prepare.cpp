#include "kintsugi/data/prepare.h"

#include <fmt/format.h>

#include <csignal>
#include <memory>

#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/corpus/corpus_page.h"
#include "kintsugi/corpus/prepare_corpus.h"

namespace kintsugi::app {
namespace {

std::atomic<bool> stopped{false};

// The first Ctrl-C ends the program cleanly; a second one ends it immediately.
void stop(int signal) {
  stopped = true;
  std::signal(signal, SIG_DFL);
}

std::string part_text(const data::PrepareResult::Part& part) {
  return fmt::format("{} in {}", base::counted(static_cast<int64_t>(part.tokens), "token"),
                     base::counted(static_cast<int64_t>(part.documents), "document"));
}

// While it exists, signals end the work cleanly.
struct Stoppable {
  explicit Stoppable(data::PrepareOptions& options) {
    options.progress = stderr;
    options.stop = &stopped;
    std::signal(SIGINT, stop);
    std::signal(SIGTERM, stop);
  }
  ~Stoppable() {
    std::signal(SIGINT, SIG_DFL);
    std::signal(SIGTERM, SIG_DFL);
  }
};

void run_pipeline(const std::filesystem::path& file, data::PrepareOptions options) {
  const corpus::Spec spec = corpus::read_spec(base::read_file(file, {1 << 20, "a pipeline file"}), file.string());
  const corpus::PreparedCorpus prepared = [&] {
    const Stoppable stoppable(options);
    return corpus::prepare_corpus(spec, options);
  }();
  write_out("{}", corpus::text_of(prepared.cleaned));
  if (prepared.cleaned.bands.bands > 0)
    write_out("near         {} bands of {} rows; similarity {:g} is found with probability {:.2f}\n",
              prepared.cleaned.bands.bands, prepared.cleaned.bands.rows, spec.deduplicate.near,
              prepared.cleaned.bands.probability(spec.deduplicate.near));
  for (const corpus::PreparedDomain& domain : prepared.domains) {
    write_out("train        {}: {}\n", part_text(domain.result.train), options.output / domain.name / "train.bin");
    if (domain.result.has_validation)
      write_out("validation   {}: {}\n", part_text(domain.result.validation),
                options.output / domain.name / "validation.bin");
  }
  write_out("report       {}\n", options.output / "report.html");
}

void run(data::PrepareOptions options) {
  const data::PrepareResult result = [&] {
    const Stoppable stoppable(options);
    return data::prepare(options);
  }();
  for (const std::string& note : result.notes) write_out("note         {}\n", note);
  if (result.empty_documents > 0) {
    write_out("note         skipped {} empty documents\n",
              base::group_digits(static_cast<int64_t>(result.empty_documents)));
  }
  write_out("read         {} in {} file{}\n", base::format_bytes(result.bytes),
            base::group_digits(static_cast<int64_t>(result.files)), result.files == 1 ? "" : "s");
  write_out("tokenizer    {}, {}: {}\n", result.tokenizer_kind, base::counted(result.vocab_size, "id"),
            (options.output / "tokenizer.json"));
  write_out("train        {}: {}\n", part_text(result.train), (options.output / "train.bin"));
  if (result.has_validation) {
    write_out("validation   {}: {}\n", part_text(result.validation), (options.output / "validation.bin"));
  }
  if (result.split_by_position) {
    write_out("note         the corpus is one document: its end is the validation split\n");
  }
}

constexpr const char* kFooter = R"(What is written into FOLDER:
  train.bin, train.idx            the ids of the training text, in Megatron's format
  validation.bin, validation.idx  the same for validation
  train.json, validation.json     counts and checksums
  tokenizer.json                  the tokenizer, which training, evaluation and generation need
In run.toml:
  [data]
  train = "FOLDER/train"
  validation = "FOLDER/validation"

Documents: a file is one document; with --field, a line is one. A document ends with the tokenizer's
end-of-text id (bytes and bpe have one; chars has one where there are several documents).
A corpus of one document is split by position: its first 90 % of characters are for training.

Examples:
  kintsugi prepare book.txt --tokenizer chars --output data/book
  kintsugi prepare /usr/include/c++ --tokenizer bpe:4096 --output data/headers
  kintsugi prepare 'wiki/*.jsonl' --field text --tokenizer gpt2/ --output data/wiki
  zcat wiki.gz | kintsugi prepare - --tokenizer bpe:8192 --output data/wiki
  kintsugi prepare train.txt --validation-text valid.txt --tokenizer bytes --output data/mine
(gpt2/ stands for a folder with encoder.json and vocab.bpe, or vocab.json and merges.txt, or a
tokenizer.json. Quotes keep the shell from expanding a pattern that is too long for it.))";

}  // namespace

void add_prepare(Command& kintsugi) {
  auto options = std::make_shared<data::PrepareOptions>();
  auto pipeline = std::make_shared<std::filesystem::path>();
  const Verb verb = kintsugi.add_verb("prepare", "Tokenizes text into token files for training");
  verb.texts(
          "inputs", options->inputs,
          "Files, folders (recursively, without hidden and binary files), glob patterns and pipes; -: standard input")
      .type_name("PATH");
  verb.text("--pipeline", *pipeline,
            "A pipeline file: sources by domain, filters, duplicates (docs/corpus.md); replaces the inputs")
      .type_name("FILE");
  verb.text("-o,--output", options->output, "Output folder; created if it does not exist")
      .type_name("FOLDER")
      .required();
  verb.text("-t,--tokenizer", options->tokenizer,
            "bytes (257 ids), chars (one id per character of the corpus), bpe:N (train a byte-level BPE with N ids; "
            "above 8 GiB on a sample), or the file or folder of an existing tokenizer")
      .type_name("NAME")
      .show_default();
  verb.text("--field", options->field, "Read JSONL (in folders: *.jsonl, *.ndjson) and take the text from this field")
      .type_name("NAME");
  verb.integer("--skip-bad-lines", options->skip_bad_lines, {0, 1'000'000'000},
               "With --field: skip up to N invalid lines")
      .type_name("N");
  verb.text("--document-end", options->document_end,
            "The token appended to each document; default: the one that the tokenizer declares")
      .type_name("TOKEN");
  verb.text("--document-begin", options->document_begin, "A token prepended to each document").type_name("TOKEN");
  verb.number("--validation", options->validation, {.min = 0, .max = 1, .below_max = true},
              "Fraction of documents for validation, drawn by --seed [0.1]; 0: none")
      .type_name("SHARE");
  verb.text("--validation-text", options->validation_text,
            "A file, folder or pattern of validation text, excluded from training")
      .type_name("PATH");
  verb.integer("--seed", options->seed, kSeeds, "Seed of the validation split").show_default();
  verb.integer("--threads", options->threads, {0, 4096}, "0: all cores").show_default();
  verb.flag("--force", options->force, "Replace existing token files in the folder");
  verb.footer(kFooter);
  verb.run([options, pipeline] {
    require_one_process("prepare");
    if (pipeline->empty() && options->inputs.empty())
      throw base::UserError("prepare", "no input; name files or folders, or a pipeline file with --pipeline");
    if (pipeline->empty()) return run(*options);
    if (!options->inputs.empty() || !options->field.empty() || !options->validation_text.empty())
      throw base::UserError("prepare",
                            "--pipeline names its inputs itself; leave out the inputs, --field and --validation-text");
    run_pipeline(*pipeline, *options);
  });
}

}  // namespace kintsugi::app
