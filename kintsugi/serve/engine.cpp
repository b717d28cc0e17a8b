#include "kintsugi/serve/engine.h"

#include <algorithm>
#include <bit>

#include "kintsugi/base/error.h"

namespace kintsugi::serve {
namespace {

// The other ranks wait for rank 0's next command, and no wait may exceed their time limit.
constexpr std::chrono::milliseconds kIdle{500};

// Serializes to, and deserializes from, a list of numbers that ranks exchange.
class NumberWriter {
 public:
  explicit NumberWriter(std::vector<int64_t>& to) : to_(to) {}
  void put(int64_t x) { to_.push_back(x); }
  void put(double x) { to_.push_back(std::bit_cast<int64_t>(x)); }
  template <typename T>
  void put_list(const std::vector<T>& list) {
    put(static_cast<int64_t>(list.size()));
    for (const T& x : list) put(static_cast<int64_t>(x));
  }

 private:
  std::vector<int64_t>& to_;
};

class NumberReader {
 public:
  explicit NumberReader(const std::vector<int64_t>& from) : from_(from) {}
  int64_t integer() { return from_.at(next_++); }
  double number() { return std::bit_cast<double>(integer()); }
  template <typename T>
  std::vector<T> list() {
    std::vector<T> list(static_cast<size_t>(integer()));
    for (T& x : list) x = static_cast<T>(integer());
    return list;
  }

 private:
  const std::vector<int64_t>& from_;
  size_t next_ = 0;
};

void put_text(NumberWriter& to, const Generation& g) {
  to.put_list(g.prompt);
  to.put(g.sample.temperature);
  to.put(g.sample.top_k);
  to.put(static_cast<int64_t>(g.sample.seed));
  to.put(g.sample.vocab);
  for (const double x : {g.sample.top_p, g.sample.min_p, g.sample.repetition_penalty, g.sample.presence_penalty,
                         g.sample.frequency_penalty})
    to.put(x);
  to.put(static_cast<int64_t>(g.sample.logit_bias.size()));
  for (const auto& [id, bias] : g.sample.logit_bias) to.put(int64_t{id}), to.put(bias);
  to.put(g.top);
  to.put(int64_t{g.score_prompt});
}

evaluate::SlotText take_text(NumberReader& from) {
  evaluate::SlotText text;
  text.prompt = from.list<int32_t>();
  text.sample.temperature = from.number();
  text.sample.top_k = from.integer();
  text.sample.seed = static_cast<uint64_t>(from.integer());
  text.sample.vocab = from.integer();
  for (double* x : {&text.sample.top_p, &text.sample.min_p, &text.sample.repetition_penalty,
                    &text.sample.presence_penalty, &text.sample.frequency_penalty})
    *x = from.number();
  text.sample.logit_bias.resize(static_cast<size_t>(from.integer()));
  for (auto& [id, bias] : text.sample.logit_bias) id = static_cast<int32_t>(from.integer()), bias = from.number();
  text.top = from.integer();
  text.score_prompt = from.integer() != 0;
  return text;
}

}  // namespace

// What all ranks do before the next pass.
struct Engine::Command {
  enum Kind : int64_t { kPass, kIdle, kEnd };

  Kind kind = kPass;
  std::vector<int64_t> ended;  // slots
  std::vector<int64_t> begun;
  std::vector<int64_t> texts;  // begun texts, serialized
};

Engine::Engine(run::Executor& executor, comm::Communicator& all)
    : all_(all), slots_(executor, &all), running_(static_cast<size_t>(slots_.size())) {}

void Engine::run(JobQueue* queue) {
  try {
    while (true) {
      Command command;
      if (queue) command = next_command(*queue);
      share(command);
      if (command.kind == Command::kEnd) return;
      apply(command);
      if (slots_.num_active() == 0) continue;
      for (evaluate::Slots::Found& found : slots_.step())
        if (queue) deliver(std::move(found));
    }
  } catch (...) {
    end_jobs();
    throw;
  }
}

// Frees the slots of texts that ended or whose client disconnected, and fills free ones from the queue; waits for a
// text if there is none.
Engine::Command Engine::next_command(JobQueue& queue) {
  Command command;
  for (size_t i = 0; i < running_.size(); ++i) {
    Running& r = running_[i];
    if (!r.job || !(r.ended || r.job->cancelled())) continue;
    if (!r.ended) r.job->end();
    r = {};
    command.ended.push_back(static_cast<int64_t>(i));
  }
  NumberWriter texts(command.texts);
  while (true) {
    const auto busy = [](const Running& r) { return r.job != nullptr; };
    const bool works = std::ranges::any_of(running_, busy) || !command.ended.empty();
    std::vector<int64_t> free;
    for (int64_t i = 0; i < slots_.size(); ++i)
      if (!running_[static_cast<size_t>(i)].job) free.push_back(i);
    if (free.empty()) break;
    const std::shared_ptr<Job> job = queue.pop(works ? std::chrono::milliseconds(0) : kIdle);
    if (!job) {
      if (!works) command.kind = queue.closed() ? Command::kEnd : Command::kIdle;
      break;
    }
    if (job->cancelled()) {
      job->end();
      continue;
    }
    const Generation& g = job->generation();
    const int64_t total = std::ssize(g.prompt);
    base::require(total > 0 && total + g.max_tokens <= capacity(), "serve", "{} and {} tokens for caches of {}", total,
                  g.max_tokens, capacity());
    const int64_t slot = slots_.best_of(free, g.prompt);
    running_[static_cast<size_t>(slot)] = {.job = job, .prompt = {}};
    command.begun.push_back(slot);
    put_text(texts, g);
  }
  queue.running = std::ranges::count_if(running_, [](const Running& r) { return r.job != nullptr; });
  return command;
}

void Engine::share(Command& command) {
  if (all_.size() == 1) return;
  int64_t sizes[] = {command.kind, std::ssize(command.ended), std::ssize(command.begun), std::ssize(command.texts)};
  all_.wait(all_.broadcast(std::as_writable_bytes(std::span(sizes)), 0));
  command.kind = static_cast<Command::Kind>(sizes[0]);
  size_t i = 1;
  for (std::vector<int64_t>* list : {&command.ended, &command.begun, &command.texts}) {
    list->resize(static_cast<size_t>(sizes[i++]));
    if (!list->empty()) all_.wait(all_.broadcast(std::as_writable_bytes(std::span(*list)), 0));
  }
}

void Engine::apply(const Command& command) {
  for (const int64_t slot : command.ended) slots_.end(slot);
  NumberReader texts(command.texts);
  for (const int64_t slot : command.begun) slots_.begin(slot, take_text(texts));
}

void Engine::deliver(evaluate::Slots::Found found) {
  Running& r = running_[static_cast<size_t>(found.slot)];
  if (r.ended) return;
  const Generation& g = r.job->generation();
  if (found.token.id == evaluate::kNotFinite) {
    r.job->fail(
        "the model's logits are NaN or infinity; its operator finds the cause with kintsugi generate and the same "
        "prompt");
    r.job->end();
    r.ended = true;
    return;
  }
  if (g.score_prompt && r.prompt.empty()) r.prompt.push_back({.id = g.prompt[0]});
  if (found.of_prompt) return r.prompt.push_back(std::move(found.token));
  if (!r.prompt_read) r.job->prompt_read(std::move(r.prompt));
  r.prompt_read = true;
  if (g.max_tokens > 0 && r.job->add(std::move(found.token))) return;
  r.job->end();
  r.ended = true;
}

void Engine::end_jobs() {
  for (Running& r : running_)
    if (r.job && !r.ended) r.job->end();
  running_.assign(running_.size(), {});
}

}  // namespace kintsugi::serve
