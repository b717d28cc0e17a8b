#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>

#include "app/ensemble.h"
#include "app/model_options.h"
#include "app/prompts.h"
#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/slots.h"
#include "kintsugi/evaluate/stop_text.h"
#include "kintsugi/text/chat_template.h"
#include "kintsugi/text/stream_decoder.h"

namespace kintsugi::app {
namespace {

struct GenerateOptions {
  std::shared_ptr<ModelOptions> model;
  PromptOptions prompts;
  std::vector<std::string> stops, biases, with;
  int64_t length = 200, copies = 1;
  int64_t context = 0;  // positions that are kept; 0: as many as the model has
  evaluate::SampleOptions sample;
};

// The options that must be the same on all ranks.
std::string text_of(const GenerateOptions& o, const std::vector<Prompt>& prompts) {
  std::string text = fmt::format(
      "--length {}\n--context {}\n--temperature {}\n--top-k {}\n--top-p {}\n--min-p {}\n--repetition-penalty "
      "{}\n--seed {}\n--chat "
      "{}",
      o.length, o.context, o.sample.temperature, o.sample.top_k, o.sample.top_p, o.sample.min_p,
      o.sample.repetition_penalty, o.sample.seed, o.prompts.chat);
  for (const std::string& bias : o.biases) text += "\n--logit-bias " + bias;
  for (const Prompt& prompt : prompts) text += "\n--prompt " + prompt.text;
  return text;
}

// What is written of one text: it ends with the model's own end, a stop text, or at the length.
class Written {
 public:
  using Say = std::function<void(std::string_view)>;  // told each part of the text as it is made
  // The answer of a chat stands alone, other texts behind their prompt.
  Written(const GenerateOptions& o, const Prompt& prompt, const text::Tokenizer& tokenizer, Say say)
      : length_(o.length),
        ends_(tokenizer.stops()),
        decoder_(tokenizer, o.prompts.chat.empty() ? prompt.text_ids() : std::span<const int32_t>()),
        stop_(stops_of(o)),
        say_(std::move(say)) {}

  // Whether the text goes on.
  bool add(int32_t id) {
    if (std::ranges::find(ends_, id) != ends_.end()) return false;
    say_(stop_.push(decoder_.add(id)));
    return ++made_ < length_ && !stop_.found();
  }

  void finish() {
    say_(stop_.push(decoder_.flush()));
    say_(stop_.finish() + "\n");
  }

  int64_t made() const { return made_; }

 private:
  static std::vector<std::string> stops_of(const GenerateOptions& o) {
    std::vector<std::string> stops = o.stops;
    if (o.prompts.chat.empty()) return stops;
    if (const std::string_view stop = text::chat_template(o.prompts.chat).stop; !stop.empty()) stops.emplace_back(stop);
    return stops;
  }

  int64_t length_, made_ = 0;
  std::vector<int32_t> ends_;
  text::StreamDecoder decoder_;
  evaluate::StopText stop_;
  Say say_;
};

// A line over one text of several.
std::string heading_of(size_t index, const Prompt& prompt) {
  constexpr size_t kMost = 60;
  return fmt::format("{}==> {}{}{} <==\n", index > 0 ? "\n" : "", index + 1, prompt.given.empty() ? "" : ": ",
                     base::one_line(prompt.given, kMost));
}

// One text is printed as it is made; of several each whole, in their order, when all are made.
class AllWritten {
 public:
  AllWritten(const GenerateOptions& o, const std::vector<Prompt>& prompts, const text::Tokenizer& tokenizer)
      : prompts_(prompts), length_(o.length), texts_(prompts.size()) {
    if (prompts.size() > 1) progress_.emplace(fmt::format("generating {} texts", prompts.size()));
    for (size_t i = 0; i < prompts.size(); ++i) {
      written_.emplace_back(o, prompts[i], tokenizer, [this, i](std::string_view part) { say(i, part); });
      if (o.prompts.chat.empty()) say(i, prompts[i].text);
    }
  }
  AllWritten(const AllWritten&) = delete;
  AllWritten& operator=(const AllWritten&) = delete;

  bool add(size_t text, int32_t id) {
    const bool goes_on = written_[text].add(id);
    if (progress_ && written_[text].made() > most_) progress_->count(most_ = written_[text].made(), length_, "tokens");
    return goes_on;
  }

  void finish() {
    if (progress_) progress_->finish();
    for (Written& w : written_) w.finish();
    if (prompts_.size() == 1) return;
    for (size_t i = 0; i < texts_.size(); ++i) print_model_text(heading_of(i, prompts_[i]) + texts_[i]);
  }

 private:
  void say(size_t text, std::string_view part) {
    prompts_.size() == 1 ? print_model_text(part) : void(texts_[text] += part);
  }

  const std::vector<Prompt>& prompts_;
  int64_t length_, most_ = 0;
  std::vector<std::string> texts_;
  std::vector<Written> written_;
  std::optional<Progress> progress_;
};

constexpr int64_t kMostSlots = 32, kRows = 64;  // texts at the same time, tokens that a pass takes

// One text by passes that take one position; several in slots.
bool uses_slots(const std::vector<Prompt>& prompts) {
  return prompts.size() > 1;
}

// Caches of the prompts and what continues them, of at most as many positions as the model has, or --context.
models::Graphs graphs_of(const GenerateOptions& o, const evaluate::CheckpointModel& model,
                         const std::vector<Prompt>& prompts) {
  const config::Settings& s = model.settings();
  constexpr int64_t kStep = 64;  // sizes of caches
  if (o.context > s.model.context)
    throw base::UserError("generate", "--context {} exceeds the model's {} positions", o.context, s.model.context);
  const int64_t most = o.context > 0 ? o.context : s.model.context;
  size_t shortest = SIZE_MAX, longest = 0;
  for (const Prompt& prompt : prompts) {
    shortest = std::min(shortest, prompt.ids.size());
    longest = std::max(longest, prompt.ids.size());
  }
  const int64_t needed = static_cast<int64_t>(longest) + o.length;
  int64_t cache = std::min(most, (needed + kStep - 1) / kStep * kStep);
  // A larger cache selects the long factors of longrope.
  if (const int64_t original = s.model.rope_original_context; needed <= original) cache = std::min(cache, original);
  if (uses_slots(prompts)) return models::build_serving(s, std::min(std::ssize(prompts), kMostSlots), kRows, cache);
  const int64_t bucket = evaluate::prompt_bucket(static_cast<int64_t>(shortest), cache);
  return models::build_generation(s, std::ssize(prompts), bucket, cache);
}

// "50256=-100"
std::pair<int32_t, double> parse_bias(const std::string& text, int64_t vocab) {
  const size_t equals = std::min(text.find('='), text.size());
  const char* const end = text.data() + text.size();
  int32_t id = -1;
  double bias = 0;
  const auto read_id = std::from_chars(text.data(), text.data() + equals, id);
  const auto read_bias = std::from_chars(std::min(text.data() + equals + 1, end), end, bias);
  if (read_id.ec != std::errc() || read_id.ptr != text.data() + equals || read_bias.ec != std::errc() ||
      read_bias.ptr != end || !std::isfinite(bias))
    throw base::UserError("generate", "--logit-bias {}: expected ID=NUMBER, e.g. 50256=-100", base::one_line(text, 60));
  if (id < 0 || id >= vocab)
    throw base::UserError("generate", "--logit-bias {}: the id is outside the vocabulary of {}",
                          base::one_line(text, 60), vocab);
  return {id, bias};
}

// Prompts of which the model does not see the beginning.
void note_dropped(const GenerateOptions& o, const evaluate::CheckpointModel& model, const std::vector<Prompt>& prompts,
                  Progress& progress) {
  const int64_t most = o.context > 0 ? o.context : model.settings().model.context;
  const auto copies = static_cast<size_t>(std::max<int64_t>(1, static_cast<int64_t>(o.copies)));
  for (size_t i = 0; i < prompts.size(); i += copies)
    if (const int64_t tokens = std::ssize(prompts[i].ids); tokens > most)
      progress.print(fmt::format("note: prompt{} has {}, more than the context of {}: the first {} dropped",
                                 prompts.size() == copies ? "" : fmt::format(" {}", i / copies + 1),
                                 base::counted(tokens, "token"), base::group_digits(most),
                                 tokens - most == 1 ? "is" : base::group_digits(tokens - most) + " are"));
}

void generate_on_rank(const GenerateOptions& o, const config::Parallel& layout, comm::World& world,
                      Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  std::vector<Prompt> prompts;
  models::Graphs graphs;
  evaluate::SampleOptions sample = o.sample;
  comm::together(model.all(), [&] {
    for (const Prompt& prompt : read_prompts(o.prompts, model)) prompts.insert(prompts.end(), o.copies, prompt);
    // Ids that the tokenizer has: the table may have more rows.
    sample.vocab = std::min<int64_t>(model.tokenizer()->vocab_size(), model.settings().model.vocab);
    for (const std::string& bias : o.biases) sample.logit_bias.push_back(parse_bias(bias, sample.vocab));
    graphs = graphs_of(o, model, prompts);
  });
  comm::require_same(model.all(), "generate", "command line", text_of(o, prompts));
  if (model.leads()) progress.tell("loading the weights");
  const auto executor = model.load(graphs);
  // The first rank writes, and decides where a text ends; a signal to any rank ends all.
  std::optional<AllWritten> written;
  if (model.leads()) {
    print_notes(model.notes(), progress);
    note_dropped(o, model, prompts, progress);
    warn_of_repeated(model.repeated(), prompts.size() == 1 ? "one text" : "the texts", progress);
    progress.finish();
    written.emplace(o, prompts, *model.tokenizer());
  }
  std::vector<std::vector<int32_t>> ids;
  for (const Prompt& prompt : prompts) ids.push_back(prompt.ids);
  const auto next = [&](size_t text, int32_t id) {
    StopSignals::at_once = false;
    if (StopSignals::count != 0 || !written) return StopSignals::count == 0;
    return written->add(text, id);
  };
  if (o.length > 0 && uses_slots(prompts)) {
    evaluate::Slots slots(*executor, &model.all());
    evaluate::continue_in_slots(slots, &model.all(), ids, sample, next);
  } else if (o.length > 0) {
    evaluate::Generator generator(*executor, &model.all());
    generator.generate(ids, sample, next);
  }
  if (written) written->finish();
}

// One text after the other, each token drawn from the mean of the members' probabilities.
void generate_by_ensemble(const GenerateOptions& o, const config::Parallel& layout, comm::World& world,
                          Progress& progress) {
  Ensemble ensemble(o.model->model, o.with, layout, world, o.model->dtype);
  const evaluate::CheckpointModel& model = ensemble.first();
  std::vector<Prompt> prompts;
  for (const Prompt& prompt : read_prompts(o.prompts, model)) prompts.insert(prompts.end(), o.copies, prompt);
  evaluate::SampleOptions sample = o.sample;
  sample.vocab = std::min<int64_t>(model.tokenizer()->vocab_size(), model.settings().model.vocab);
  for (const std::string& bias : o.biases) sample.logit_bias.push_back(parse_bias(bias, sample.vocab));
  size_t longest = 0;
  for (const Prompt& prompt : prompts) longest = std::max(longest, prompt.ids.size());
  progress.tell("loading the weights");
  ensemble.load(static_cast<int64_t>(longest) + o.length);
  progress.finish();
  AllWritten written(o, prompts, *model.tokenizer());
  StopSignals::at_once = false;
  for (size_t text = 0; text < prompts.size() && o.length > 0; ++text) {
    std::vector<int32_t> ids = prompts[text].ids;
    Mixed mixed = ensemble.read(ids);
    while (StopSignals::count == 0) {
      const evaluate::Logits logits = {mixed.log_probabilities.data(), std::ssize(mixed.log_probabilities),
                                       tensor::DType::f32};
      const int32_t id = evaluate::sample_next(logits, sample, ids, prompts[text].ids.size(), text);
      if (id == evaluate::kNotFinite)
        throw base::UserError(
            "generate", "the logits after {} tokens of a text are NaN or infinity in one of the models", ids.size());
      ids.push_back(id);
      if (!written.add(text, id)) break;
      mixed = ensemble.feed(id);
    }
  }
  written.finish();
}

void run(const GenerateOptions& o) {
  check_prompt_options(o.prompts);
  const StopSignals signals;
  StopSignals::at_once = true;  // up to the first token
  Progress progress("opening the model");
  on_ranks(
      "generate", *o.model,
      [](const config::Parallel& layout) { evaluate::require_whole_samples(plan::plan_from(layout), layout); },
      [&](const config::Parallel& layout, comm::World& world) {
        o.with.empty() ? generate_on_rank(o, layout, world, progress)
                       : generate_by_ensemble(o, layout, world, progress);
      });
}

}  // namespace

void add_generate(Command& kintsugi) {
  constexpr int64_t kMost = 1'000'000'000;
  const Verb verb = kintsugi.add_verb("generate", "Generates text with a trained model");
  const auto o = std::make_shared<GenerateOptions>();
  o->model = add_model_options(verb);
  add_prompt_options(verb, o->prompts);
  verb.texts("--with", o->with,
             "A further model of an ensemble, whose probabilities are averaged with the first's (repeatable)");
  verb.integer("--length", o->length, {0, kMost}, "Maximum number of tokens per text").show_default();
  verb.integer("--context", o->context, {1, kMost}, "Context length in tokens; default: the model's");
  verb.number("--temperature", o->sample.temperature, {0, std::numeric_limits<double>::infinity()},
              "Sampling temperature; 0: greedy, 1: the model's distribution")
      .show_default();
  verb.integer("--top-k", o->sample.top_k, {0, kMost}, "Sample from the k most likely tokens; 0: from all")
      .show_default();
  verb.number(
          "--top-p", o->sample.top_p, {1e-9, 1},
          "Sample from the smallest set of most likely tokens with at least this total probability (nucleus sampling)")
      .show_default();
  verb.number("--min-p", o->sample.min_p, {0, 1},
              "Sample from tokens with at least this fraction of the highest probability")
      .show_default();
  verb.number("--repetition-penalty", o->sample.repetition_penalty, {1e-3, 100},
              "Penalty of tokens already in the text: divides their positive logits and multiplies their negative ones")
      .show_default();
  verb.texts("--logit-bias", o->biases, "ID=NUMBER: add NUMBER to the logit of token ID (repeatable)");
  verb.integer("--copies", o->copies, {1, 4096}, "Texts of each prompt").show_default();
  verb.integer("--seed", o->sample.seed, kSeeds, "Random seed").show_default();
  verb.texts("--stop", o->stops, "Stop before this text (repeatable)");
  verb.run([o] {
    find_best("generate", *o->model);
    run(*o);
  });
}

}  // namespace kintsugi::app
