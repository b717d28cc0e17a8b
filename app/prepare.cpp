#include "kintsugi/data/prepare.h"

#include <fmt/format.h>

#include <csignal>
#include <memory>

#include "app/ranks.h"
#include "app/standard_streams.h"
#include "app/verbs.h"
#include "kintsugi/base/format.h"

namespace kintsugi::app {
namespace {

std::atomic<bool> stopped{false};

// The first Ctrl-C ends the program cleanly; a second one ends it at once.
void stop(int signal) {
  stopped = true;
  std::signal(signal, SIG_DFL);
}

std::string part_text(const data::PrepareResult::Part& part) {
  return fmt::format("{} in {}", base::counted(static_cast<int64_t>(part.tokens), "token"),
                     base::counted(static_cast<int64_t>(part.documents), "document"));
}

void run(data::PrepareOptions options) {
  options.progress = stderr;
  options.stop = &stopped;
  std::signal(SIGINT, stop);
  std::signal(SIGTERM, stop);
  const data::PrepareResult result = data::prepare(options);
  std::signal(SIGINT, SIG_DFL);
  std::signal(SIGTERM, SIG_DFL);
  for (const std::string& note : result.notes) write_out("note         {}\n", note);
  if (result.empty_documents > 0) {
    write_out("note         {} empty documents left out\n",
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
    write_out("note         the corpus is one document: its beginning is for training, its end for validation\n");
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
  const Verb verb = kintsugi.add_verb("prepare", "Turns text into token files to train on");
  verb.texts("inputs", options->inputs,
             "Files, folders (all files in them; hidden and binary ones are skipped), patterns and pipes; -: the "
             "standard input")
      .type_name("PATH")
      .required();
  verb.text("-o,--output", options->output, "The folder for the token files; created if it does not exist")
      .type_name("FOLDER")
      .required();
  verb.text("-t,--tokenizer", options->tokenizer,
            "bytes (257 ids), chars (an id per character of the corpus), bpe:N (learn a byte-level BPE of N ids "
            "from the corpus; of more than 8 GiB, from a sample), or the file or folder of one that exists")
      .type_name("NAME")
      .show_default();
  verb.text("--field", options->field,
            "The inputs are JSONL (in folders: *.jsonl, *.ndjson), and this field of each line is the text")
      .type_name("NAME");
  verb.integer("--skip-bad-lines", options->skip_bad_lines, {0, 1'000'000'000},
               "With --field: pass over up to N lines that cannot be read")
      .type_name("N");
  verb.text("--document-end", options->document_end,
            "The token that ends each document, instead of the one that the tokenizer declares")
      .type_name("TOKEN");
  verb.text("--document-begin", options->document_begin, "A token that begins each document").type_name("TOKEN");
  verb.number("--validation", options->validation, {.min = 0, .max = 1, .below_max = true},
              "Share of the documents that is kept for validation, chosen by seed [0.1]; 0: none")
      .type_name("SHARE");
  verb.text("--validation-text", options->validation_text,
            "A file, folder or pattern to take as validation text; left out of training")
      .type_name("PATH");
  verb.integer("--seed", options->seed, kSeeds, "Chooses the validation documents").show_default();
  verb.integer("--threads", options->threads, {0, 4096}, "0: all cores").show_default();
  verb.flag("--force", options->force, "Replace token files that are in the folder already");
  verb.footer(kFooter);
  verb.run([options] {
    require_one_process("prepare");
    run(*options);
  });
}

}  // namespace kintsugi::app
