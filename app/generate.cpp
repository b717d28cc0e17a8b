#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "app/stop_signals.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/stop_text.h"
#include "kintsugi/text/stream_decoder.h"

namespace kintsugi::app {
namespace {

struct Options {
  std::string model, prompt, prompt_file;
  std::vector<std::string> stops;
  int64_t length = 200;
  evaluate::SampleOptions sample;
  int threads = 0;
};

void put(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
}

void run(const Options& o) {
  evaluate::CheckpointModel model(o.model, o.threads);
  if (!model.tokenizer)
    throw base::UserError("generate", "\"{}\" has no tokenizer.json: it was trained on token files without one",
                          model.reader.folder().string());
  const std::string prompt = o.prompt_file.empty() ? o.prompt : base::read_file(o.prompt_file);
  std::vector<int32_t> ids = model.tokenizer->encode(prompt);
  const auto end = model.tokenizer->end_of_text();
  // Without a prompt the model begins as it began every document, or every line where there are no documents.
  if (ids.empty()) ids = end ? std::vector<int32_t>{*end} : model.tokenizer->encode("\n");

  const int64_t cache = model.config.settings.model.context;
  const int64_t bucket = evaluate::prompt_bucket(static_cast<int64_t>(ids.size()), cache);
  const auto executor = model.load(models::build_generation(model.config.settings, 1, bucket, cache));
  evaluate::Generator generator(*executor);
  text::StreamDecoder decoder(*model.tokenizer);
  evaluate::StopText stop(o.stops);
  const StopSignals signals;
  put(prompt);
  int64_t made = 0;
  if (o.length > 0)
    generator.generate(ids, o.sample, [&](int32_t id) {
      if (end && id == *end) return false;
      put(stop.push(decoder.add(id)));
      return ++made < o.length && !stop.found() && StopSignals::count == 0;
    });
  put(stop.push(decoder.flush()));
  put(stop.finish() + "\n");
}

}  // namespace

void add_generate(CLI::App& kintsugi) {
  CLI::App* verb = kintsugi.add_subcommand("generate", "Text from a checkpoint, as it comes");
  const auto o = std::make_shared<Options>();
  verb->add_option("model", o->model, "A checkpoint's folder, or a run's (its newest checkpoint)")->required();
  CLI::Option* prompt = verb->add_option("--prompt", o->prompt, "The text to go on from");
  verb->add_option("--prompt-file", o->prompt_file, "The same from a file")->excludes(prompt);
  verb->add_option("--length", o->length, "Tokens at most")->check(CLI::NonNegativeNumber)->capture_default_str();
  verb->add_option("--temperature", o->sample.temperature, "0: always the most likely token; 1: as the model has it")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--top-k", o->sample.top_k, "Draw from the k most likely alone; 0: from all")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  verb->add_option("--seed", o->sample.seed, "Another seed, another text")->capture_default_str();
  verb->add_option("--stop", o->stops, "End before this text (may be given several times)");
  verb->add_option("--threads", o->threads, "Threads; all cores if not given")->check(CLI::PositiveNumber);
  verb->callback([o] { run(*o); });
}

}  // namespace kintsugi::app
