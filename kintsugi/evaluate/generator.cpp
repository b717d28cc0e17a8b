#include "kintsugi/evaluate/generator.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::evaluate {

int64_t prompt_bucket(int64_t prompt, int64_t cache) {
  int64_t bucket = 16;
  while (bucket < prompt && bucket < 512) bucket *= 2;
  return std::min(bucket, cache);
}

namespace {

// Sizes known from the program of one stage; other stages have other parts.
struct Known {
  int64_t capacity = 0;  // of the caches
  int64_t batch = 0;
  int64_t chunk = 0;  // of the list `prefill`
};

Known known_here(const run::Executor& executor) {
  Known k;
  for (const program::StateInfo& s : executor.program().states)
    if (s.kind == program::StateKind::cache) k.capacity = s.whole.shape.size("key_seq");
  // The program may have lists of other sizes, as that of training.
  const program::Program& p = executor.program();
  for (const program::Call& call : p.list(program::Step::prefill).calls)
    for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions)
      for (const program::BufferId id : i.ins)
        if (const program::Buffer& b = p.buffer(p.root(id)); b.input == "tokens") {
          k.batch = b.whole.size("batch");
          k.chunk = std::max(k.chunk, b.whole.size("seq"));
        }
  return k;
}

}  // namespace

Generator::Generator(run::Executor& executor, comm::Communicator* all)
    : executor_(executor), all_(all), draws_(executor, program::Step::decode, all) {
  std::vector<Known> every = {known_here(executor)};
  if (all_) {
    const Known mine = every[0];
    every.resize(static_cast<size_t>(all_->size()));
    all_->wait(all_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  }
  for (const Known& k : every) {
    capacity_ = std::max(capacity_, k.capacity);
    batch_ = std::max(batch_, k.batch);
    chunk_ = std::max(chunk_, k.chunk);
  }
  base::require(capacity_ >= chunk_, "generate", "caches of {} for prompts of {}", capacity_, chunk_);
}

// Runs `count` tokens of each text at cache positions from numbers.position; pads missing tokens.
void Generator::run(program::Step step, kernels::Numbers numbers, std::span<const Text> texts, int64_t count,
                    int64_t columns) {
  base::require(std::ssize(texts) == batch_, "generate", "{} texts for a program of {}", texts.size(), batch_);
  const auto begin = static_cast<size_t>(first_ + numbers.position);
  fill_rows(texts, begin, begin + static_cast<size_t>(count), static_cast<size_t>(columns), tokens_);
  executor_.run(step, numbers, [&](const run::Executor::Inputs& inputs) {
    if (inputs.has("tokens")) inputs.set("tokens", {tokens_, 0, columns}, 0);
  });
  step_ = step;
  position_ = numbers.position + count;
}

// Reads up to `read` tokens of each text. Later positions are padding: they write keys that subsequent tokens overwrite
// before they are visible. A chunk that would exceed the caches begins earlier and rereads a few tokens.
void Generator::prefill(std::span<const Text> texts, int64_t read) {
  const int64_t total = read - first_;
  base::require(total > position_ && total <= capacity_, "generate", "{} tokens for caches of {}", total, capacity_);
  while (position_ < total) {
    const int64_t begin = std::min(position_, capacity_ - chunk_), count = std::min(chunk_, total - begin);
    run(program::Step::prefill, {.position = begin, .last = count - 1}, texts, count, chunk_);
  }
}

// Reads one more token of each text.
void Generator::decode(std::span<const Text> texts) {
  base::require(position_ < capacity_, "generate", "the caches are full");
  run(program::Step::decode, {.position = position_, .last = 0}, texts, 1, 1);
}

void Generator::read_to(std::span<const Text> texts, int64_t read) {
  if (read - first_ > capacity_) {
    first_ = read - std::max<int64_t>(1, capacity_ / 2);
    position_ = 0;
  }
  position_ > 0 && read - first_ == position_ + 1 ? decode(texts) : prefill(texts, read);
}

std::span<const float> Generator::logits() {
  if (!executor_.has_output(step_, "logits")) return {};
  const tensor::View out = executor_.output(step_, "logits");
  logits_.resize(static_cast<size_t>(out.elements()));
  tensor::dispatch(out.dtype(), [&]<typename T>(T) {
    std::ranges::transform(out.as<T>(), logits_.begin(), [](T x) { return static_cast<float>(x); });
  });
  return logits_;
}

std::span<const float> Generator::read(std::span<const int32_t> text) {
  const Text whole = {.ids = {text.begin(), text.end()}};
  restart();
  prefill({&whole, 1}, std::ssize(text));
  return logits();
}

std::span<const float> Generator::feed(int32_t token) {
  Text text;
  text.ids.resize(static_cast<size_t>(first_ + position_ + 1));
  text.ids.back() = token;
  decode({&text, 1});
  return logits();
}

// A text continues only if it does on all ranks.
void Generator::end_together(std::vector<int32_t>& goes_on) {
  if (!all_) return;
  const std::vector<int32_t> mine = goes_on;
  all_->wait(all_->all_reduce(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(goes_on)),
                              tensor::DType::i32, comm::Reduction::min));
}

void Generator::generate(std::span<const std::vector<int32_t>> prompts, const SampleOptions& options,
                         const std::function<bool(size_t, int32_t)>& next) {
  std::vector<Text> texts;
  for (const std::vector<int32_t>& prompt : prompts) {
    base::require(!prompt.empty(), "generate", "a prompt without a token");
    const std::ptrdiff_t kept = std::min(capacity_, std::ssize(prompt));
    texts.push_back(
        {.ids = {prompt.end() - kept, prompt.end()}, .prompt = static_cast<size_t>(kept), .stream = texts.size()});
  }
  restart();
  while (!std::ranges::all_of(texts, &Text::ended)) {
    size_t read = SIZE_MAX;  // to the end of the shortest
    for (const Text& t : texts)
      if (!t.ended) read = std::min(read, t.ids.size());
    read_to(texts, static_cast<int64_t>(read));
    const std::vector<int32_t> ids = draws_.draw(step_, texts, read, options);
    std::vector<int32_t> goes_on(texts.size(), 1);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i].needs_one(read)) continue;
      texts[i].ids.push_back(ids[i]);
      goes_on[i] = next(i, ids[i]) ? 1 : 0;
    }
    end_together(goes_on);
    for (size_t i = 0; i < texts.size(); ++i) texts[i].ended |= goes_on[i] == 0;
  }
}

void Generator::generate(std::span<const int32_t> prompt, const SampleOptions& options,
                         const std::function<bool(int32_t)>& next) {
  const std::vector<int32_t> ids(prompt.begin(), prompt.end());
  generate({&ids, 1}, options, [&](size_t, int32_t id) { return next(id); });
}

}  // namespace kintsugi::evaluate
