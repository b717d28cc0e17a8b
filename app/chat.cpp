#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "app/model_options.h"
#include "app/standard_streams.h"
#include "app/stop_signals.h"
#include "app/verbs.h"
#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"
#include "kintsugi/evaluate/cache_size.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/evaluate/layout.h"
#include "kintsugi/evaluate/stop_text.h"
#include "kintsugi/text/chat_template.h"
#include "kintsugi/text/stream_decoder.h"

namespace kintsugi::app {
namespace {

using text::ChatTemplate;
using text::Message;
using text::Role;

struct ChatOptions {
  std::shared_ptr<ModelOptions> model;
  std::string chat, system;
  int64_t length = 512;
  int64_t context = 0;  // positions that are kept; 0: evaluate::default_positions
  evaluate::SampleOptions sample;
};

// That of --chat, or which the model was trained with, or of its Hugging Face folder.
const ChatTemplate& template_of(const ChatOptions& o, const evaluate::CheckpointModel& model) {
  if (!o.chat.empty()) return text::chat_template(o.chat);
  const std::string& trained = model.settings().data.chat_template;
  if (!trained.empty()) return text::chat_template(trained);
  if (const ChatTemplate* found = text::find_chat_template(model.folder())) return *found;
  throw base::UserError("chat", "\"{}\" does not name its chat template; name it, e.g. --chat chatml",
                        model.folder().string());
}

// What was said so far, as messages and as the ids that the model has seen.
class History {
 public:
  History(const ChatTemplate& chat, const text::Tokenizer& tokenizer, std::string system)
      : chat_(chat), tokenizer_(tokenizer), system_(std::move(system)) {
    forget();
  }

  void forget() {
    messages_.clear();
    ids_ = tokenizer_.special_tokens().before;
    if (!system_.empty()) messages_.push_back({Role::system, system_});
  }

  // The user's turn, after which the model answers.
  const std::vector<int32_t>& ask(std::string question) {
    const bool first = messages_.empty() || messages_.back().role == Role::system;
    messages_.push_back({Role::user, std::move(question)});
    const std::span<const Said> said(messages_);
    const std::string text = text::format_chat(chat_, views(first ? said : said.last(1)));
    encode(first ? text : text.substr(chat_.begin.size()), first);
    return ids_;
  }

  // `ended`: the answer has its stop text.
  void answer(std::string text, std::span<const int32_t> ids, bool ended) {
    messages_.push_back({Role::assistant, std::move(text)});
    ids_.insert(ids_.end(), ids.begin(), ids.end());
    if (!ended) encode(std::string(chat_.stop), false);
    if (!text::after_answer(chat_).empty()) encode(std::string(text::after_answer(chat_)), false);
  }

  // Leaves out the oldest question with its answer. False: there is only the last question.
  bool shorten() {
    const size_t first = !messages_.empty() && messages_[0].role == Role::system ? 1 : 0;
    if (messages_.size() < first + 3) return false;
    messages_.erase(messages_.begin() + static_cast<std::ptrdiff_t>(first),
                    messages_.begin() + static_cast<std::ptrdiff_t>(first) + 2);
    ids_ = tokenizer_.special_tokens().before;
    encode(text::format_chat(chat_, views(messages_)), true);
    return true;
  }

  const std::vector<int32_t>& ids() const { return ids_; }

 private:
  struct Said {
    Role role;
    std::string content;
  };

  static std::vector<Message> views(std::span<const Said> said) {
    std::vector<Message> list;
    for (const Said& s : said) list.push_back({s.role, s.content});
    return list;
  }
  void encode(const std::string& text, bool first) { text::encode_chat(tokenizer_, text, first, ids_); }

  const ChatTemplate& chat_;
  const text::Tokenizer& tokenizer_;
  std::string system_;
  std::vector<Said> messages_;
  std::vector<int32_t> ids_;
};

// One answer, printed as it is made.
class Answer {
 public:
  Answer(const ChatTemplate& chat, const text::Tokenizer& tokenizer, int64_t length)
      : ends_(tokenizer.stops()), length_(length), decoder_(tokenizer), stop_(stops_of(chat)) {
    for (const int32_t end : ends_)
      if (text::stop_token(tokenizer, chat) == end || tokenizer.decode(std::span(&end, 1)) == chat.stop) stop_id_ = end;
  }

  // Whether it goes on.
  bool add(int32_t id) {
    const bool end = std::ranges::find(ends_, id) != ends_.end(), stops = id == stop_id_;
    if (!end || stops) ids_.push_back(id);
    if (end) {
      ended_ = stops;
      return false;
    }
    say(stop_.push(decoder_.add(id)));
    ended_ = stop_.found();
    return !ended_ && std::ssize(ids_) < length_;
  }
  void finish() {
    if (!ended_) say(stop_.push(decoder_.flush()));
    say(stop_.finish());
    print_at_once("\n");
  }

  const std::string& text() const { return text_; }
  std::span<const int32_t> ids() const { return ids_; }
  bool ended() const { return ended_; }

 private:
  static std::vector<std::string> stops_of(const ChatTemplate& chat) {
    return chat.stop.empty() ? std::vector<std::string>() : std::vector{std::string(chat.stop)};
  }
  void say(const std::string& part) {
    text_ += part;
    print_model_text(part);
  }

  std::vector<int32_t> ends_;
  int32_t stop_id_ = -1;  // the one of them that is the chat's stop text
  bool ended_ = false;
  int64_t length_;
  text::StreamDecoder decoder_;
  evaluate::StopText stop_;
  std::string text_;
  std::vector<int32_t> ids_;
};

constexpr std::string_view kNew = "/new", kQuit = "/quit";

// The next line, on every rank; nothing at the end of the input.
std::optional<std::string> next_line(comm::Communicator& all, bool terminal) {
  std::string line;
  bool more = true;
  if (all.rank() == 0) {
    if (terminal) print_at_once("> ");
    more = static_cast<bool>(std::getline(std::cin, line));
    if (line.ends_with('\r')) line.pop_back();
    if (!more && terminal) print_at_once("\n");
  }
  if (comm::of_rank_0(all, more ? 1 : 0) == 0) return std::nullopt;
  return all.size() == 1 ? line : comm::text_of_rank_0(all, line);
}

void chat_on_rank(const ChatOptions& o, const config::Parallel& layout, comm::World& world, Progress& progress) {
  evaluate::CheckpointModel model(o.model->model, layout, world, o.model->dtype, o.model->average);
  const ChatTemplate* chat = nullptr;
  std::optional<models::Graphs> graphs;
  const int64_t most = model.settings().model.context,
                context = o.context > 0 ? o.context : evaluate::default_positions(model.settings(), 1);
  comm::together(model.all(), [&] {
    require_tokenizer("chat", model);
    if (context > most) throw base::UserError("chat", "--context {} exceeds the model's {} positions", context, most);
    chat = &template_of(o, model);
    graphs = models::build_generation(model.settings(), 1, evaluate::prompt_bucket(context, context), context);
  });
  if (model.leads()) progress.tell("loading the weights");
  const auto executor = model.load(*graphs);
  evaluate::Generator generator(*executor, &model.all());
  if (model.leads()) {
    warn_of_repeated(model.repeated(), "one conversation", progress);
    note_positions(context, most, o.context > 0, progress);
    progress.finish();
  }
  const bool terminal = model.leads() && ::isatty(STDIN_FILENO) == 1 && ::isatty(STDOUT_FILENO) == 1;
  if (terminal)
    print_at_once(fmt::format(
        "{} with chat template {}. Ctrl-C interrupts an answer, {} starts a new conversation, {} or Ctrl-D quits.\n",
        base::one_line(model.folder().string()), chat->name, kNew, kQuit));
  evaluate::SampleOptions sample = o.sample;
  sample.vocab = std::min<int64_t>(model.tokenizer()->vocab_size(), model.settings().model.vocab);
  History history(*chat, *model.tokenizer(), o.system);
  while (const std::optional<std::string> line = next_line(model.all(), terminal)) {
    if (*line == kQuit) return;
    if (line->find_first_not_of(" \t") == line->npos) continue;
    if (*line == kNew) {
      history.forget();
      continue;
    }
    history.ask(*line);
    const int64_t room = std::max<int64_t>(context - std::min(o.length, context / 2), 1);
    bool shortened = false;
    while (std::ssize(history.ids()) > room && history.shorten()) shortened = true;
    if (shortened && terminal) print_at_once(fmt::format("(truncated: the model sees the last {} tokens)\n", context));
    // Every rank has the ids; the first prints, and decides where the answer ends.
    Answer answer(*chat, *model.tokenizer(), o.length);
    std::vector<int32_t> drawn;
    if (model.leads()) StopSignals::rearm();
    StopSignals::at_once = false;
    generator.generate(history.ids(), sample, [&](int32_t id) {
      drawn.push_back(id);
      return !model.leads() || (StopSignals::count == 0 && answer.add(id));
    });
    StopSignals::at_once = true;
    if (model.leads()) answer.finish();
    const bool ended = comm::of_rank_0(model.all(), answer.ended() ? 1 : 0) == 1;
    const int64_t kept = comm::of_rank_0(model.all(), std::ssize(answer.ids()));
    const std::string said = model.all().size() == 1 ? answer.text() : comm::text_of_rank_0(model.all(), answer.text());
    history.answer(said, std::span(drawn).first(static_cast<size_t>(std::min(kept, std::ssize(drawn)))), ended);
    sample.seed += 1;  // other numbers in the next answer
  }
}

void run(const ChatOptions& o) {
  if (!o.chat.empty()) text::chat_template(o.chat);
  const StopSignals signals;
  StopSignals::at_once = true;  // but within an answer
  Progress progress("opening the model");
  on_ranks(
      "chat", *o.model,
      [](const config::Parallel& layout) { evaluate::require_whole_samples(plan::plan_from(layout), layout); },
      [&](const config::Parallel& layout, comm::World& world) { chat_on_rank(o, layout, world, progress); });
}

}  // namespace

void add_chat(Command& kintsugi) {
  constexpr int64_t kMost = 1'000'000'000;
  const Verb verb = kintsugi.add_verb("chat", "Chats with an instruction-tuned model in the terminal");
  const auto o = std::make_shared<ChatOptions>();
  o->model = add_model_options(verb);
  std::string chats;
  for (const ChatTemplate& chat : text::chat_templates()) chats += (chats.empty() ? "" : ", ") + std::string(chat.name);
  verb.text("--chat", o->chat, fmt::format("The chat template: {}; default: that of the run or folder", chats));
  verb.any_text("--system", o->system, "The system prompt");
  verb.integer("--length", o->length, {1, kMost}, "Maximum number of tokens per answer").show_default();
  verb.integer("--context", o->context, {1, kMost},
               "Context length in tokens; default: the model's, or 8,192 if its caches exceed 4 GiB");
  verb.number("--temperature", o->sample.temperature, {0, std::numeric_limits<double>::infinity()},
              "Sampling temperature; 0: greedy, 1: the model's distribution")
      .show_default();
  verb.integer("--top-k", o->sample.top_k, {0, kMost}, "Sample from the k most likely tokens; 0: from all")
      .show_default();
  verb.integer("--seed", o->sample.seed, kSeeds, "Random seed").show_default();
  verb.run([o] {
    find_best("chat", *o->model);
    run(*o);
  });
}

}  // namespace kintsugi::app
