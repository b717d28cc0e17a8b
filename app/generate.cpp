#include <fmt/format.h>

#include <limits>
#include <memory>

#include "app/model_options.h"
#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/stop_text.h"
#include "kintsugi/text/chat_template.h"
#include "kintsugi/text/stream_decoder.h"

namespace kintsugi::app {
namespace {

constexpr base::MostBytes kMostOfPrompt = {64 << 20, "a prompt"};

struct GenerateOptions {
  std::shared_ptr<ModelOptions> model;
  std::string prompt, prompt_file;
  std::string chat, system;  // the format of a chat; empty: the prompt is plain text
  std::vector<std::string> stops;
  int64_t length = 200;
  evaluate::SampleOptions sample;
};

// The options that must be the same on all ranks.
std::string text_of(const GenerateOptions& o, const std::string& prompt) {
  return fmt::format("--length {}\n--temperature {}\n--top-k {}\n--seed {}\n--chat {}\n--prompt {}", o.length,
                     o.sample.temperature, o.sample.top_k, o.sample.seed, o.chat, prompt);
}

struct Prompt {
  std::string text;
  std::vector<int32_t> ids;
};

// The prompt as the user's turn, after which the model answers.
std::string chat_of(const GenerateOptions& o, const std::string& prompt, const text::Tokenizer& tokenizer) {
  const text::ChatTemplate& chat = text::chat_template(o.chat);
  if (tokenizer.encode(chat.stop).size() != 1)
    throw base::UserError("generate", "--chat {}: the tokenizer has no token \"{}\", so the model knows no such chats",
                          o.chat, chat.stop);
  std::vector<text::Message> messages;
  if (!o.system.empty()) messages.push_back({text::Role::system, o.system});
  messages.push_back({text::Role::user, prompt});
  return text::format_chat(chat, messages);
}

Prompt read_prompt(const GenerateOptions& o, const evaluate::CheckpointModel& model) {
  if (!model.tokenizer())
    throw base::UserError("generate", "\"{}\" has no tokenizer, and text is made of no ids without one",
                          model.folder().string());
  Prompt prompt = {.text = o.prompt_file.empty() ? o.prompt : base::read_file(o.prompt_file, kMostOfPrompt), .ids = {}};
  if (!o.chat.empty()) prompt.text = chat_of(o, prompt.text, *model.tokenizer());
  prompt.ids = model.tokenizer()->encode(prompt.text);
  if (model.made_elsewhere()) {
    const std::vector<int32_t> before = model.tokenizer()->special_tokens().before;
    prompt.ids.insert(prompt.ids.begin(), before.begin(), before.end());
  }
  for (const int32_t id : prompt.ids)
    if (id >= model.settings().model.vocab)
      throw base::UserError("generate",
                            "the prompt has the id {}, but the model's table has {} rows: the tokenizer is "
                            "that of another model",
                            id, model.settings().model.vocab);
  // Without a prompt the model starts as at the beginning of a document, or of a line if there are no documents.
  const auto end = model.tokenizer()->end_of_text();
  if (prompt.ids.empty()) prompt.ids = end ? std::vector<int32_t>{*end} : model.tokenizer()->encode("\n");
  return prompt;
}

void generate_on_rank(const GenerateOptions& o, const config::Parallel& layout, comm::World& world,
                      Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype);
  Prompt prompt;
  models::Graphs graphs;
  comm::together(model.all(), [&] {
    prompt = read_prompt(o, model);
    const int64_t cache = model.settings().model.context;
    const int64_t bucket = evaluate::prompt_bucket(static_cast<int64_t>(prompt.ids.size()), cache);
    graphs = models::build_generation(model.settings(), 1, bucket, cache);
  });
  comm::require_same(model.all(), "generate", "command line", text_of(o, prompt.text));
  if (model.leads()) progress.tell("loading the weights");
  const auto executor = model.load(graphs);
  evaluate::Generator generator(*executor, &model.all());
  const auto end = model.tokenizer()->end_of_text();
  text::StreamDecoder decoder(*model.tokenizer());
  std::vector<std::string> stops = o.stops;
  if (!o.chat.empty()) stops.emplace_back(text::chat_template(o.chat).stop);
  evaluate::StopText stop(stops);
  // The first rank writes, and decides where the text ends; a signal to any rank ends it too.
  const bool leads = model.leads();
  if (leads) {
    warn_of_repeated(model.repeated(), "one text", progress);
    progress.finish();
  }
  if (leads && o.chat.empty()) print_at_once(prompt.text);
  int64_t made = 0;
  if (o.length > 0)
    generator.generate(prompt.ids, o.sample, [&](int32_t id) {
      StopSignals::at_once = false;
      if (StopSignals::count != 0 || !leads) return StopSignals::count == 0;
      if (end && id == *end) return false;
      print_at_once(stop.push(decoder.add(id)));
      return ++made < o.length && !stop.found();
    });
  if (!leads) return;
  print_at_once(stop.push(decoder.flush()));
  print_at_once(stop.finish() + "\n");
}

void run(const GenerateOptions& o) {
  if (!o.chat.empty()) text::chat_template(o.chat);
  if (o.chat.empty() && !o.system.empty())
    throw base::UserError("generate", "--system needs --chat, the format of the model's chats");
  const StopSignals signals;
  StopSignals::at_once = true;  // up to the first token
  Progress progress("opening the model");
  on_ranks(
      "generate", *o.model,
      [](const config::Parallel& layout) { evaluate::require_whole_samples(plan::plan_from(layout), layout); },
      [&](const config::Parallel& layout, comm::World& world) { generate_on_rank(o, layout, world, progress); });
}

}  // namespace

void add_generate(Command& kintsugi) {
  constexpr int64_t kMost = 1'000'000'000;
  const Verb verb = kintsugi.add_verb("generate", "Generates text from a checkpoint");
  const auto o = std::make_shared<GenerateOptions>();
  o->model = add_model_options(verb);
  const Option prompt = verb.any_text("--prompt", o->prompt, "The text to continue");
  verb.text("--prompt-file", o->prompt_file, "The same from a file").excludes(prompt);
  std::string chats;
  for (const text::ChatTemplate& chat : text::chat_templates())
    chats += (chats.empty() ? "" : ", ") + std::string(chat.name);
  verb.text("--chat", o->chat,
            fmt::format("The prompt is a turn of a chat, in the format {}; prints the answer", chats));
  verb.any_text("--system", o->system, "With --chat: what the model is told first");
  verb.integer("--length", o->length, {0, kMost}, "Tokens at most").show_default();
  verb.number("--temperature", o->sample.temperature, {0, std::numeric_limits<double>::infinity()},
              "0: always the most likely token; 1: as the model has it")
      .show_default();
  verb.integer("--top-k", o->sample.top_k, {0, kMost}, "Sample only from the k most likely tokens; 0: from all")
      .show_default();
  verb.integer("--seed", o->sample.seed, kSeeds, "Random seed").show_default();
  verb.texts("--stop", o->stops, "End before this text (may be given several times)");
  verb.run([o] {
    find_best("generate", *o->model);
    run(*o);
  });
}

}  // namespace kintsugi::app
