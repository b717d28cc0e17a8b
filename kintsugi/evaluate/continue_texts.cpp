#include "kintsugi/evaluate/continue_texts.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/evaluate/generator.h"

namespace kintsugi::evaluate {
namespace {

// Whether the program has the lists `prefill` and `decode`: on all stages or on none.
bool has_caches(const program::Program& p) {
  return std::ranges::any_of(p.lists, [](const program::CallList& list) { return list.step == program::Step::decode; });
}

class Pass {
 public:
  Pass(run::Executor& executor, comm::Communicator& all, const Continuation& how)
      : executor_(executor),
        how_(how),
        draws_(executor, has_caches(executor.program()) ? program::Step::decode : program::Step::sample, &all) {
    if (has_caches(executor.program())) cached_.emplace(executor, &all);
  }

  // Reads `read` tokens of each text, and samples the next token of texts with no more.
  void run(std::vector<Text>& texts, std::vector<Continued>& made, size_t read) {
    const program::Step step = feed(texts, read);
    std::vector<float> scores;
    const std::vector<int32_t> next = draws_.draw(step, texts, read, how_.sample, how_.scored ? &scores : nullptr);
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i].needs_one(read)) continue;
      texts[i].ended = std::ranges::count(how_.ends, next[i]) > 0;
      if (texts[i].ended) made[i].end = next[i];
      if (how_.scored) made[i].log_probabilities.push_back(scores[i]);
      if (!texts[i].ended) texts[i].ids.push_back(next[i]);
      if (static_cast<int64_t>(texts[i].ids.size() - texts[i].prompt) >= how_.length) texts[i].ended = true;
    }
  }

 private:
  // Returns the list whose logits follow.
  program::Step feed(const std::vector<Text>& texts, size_t read) {
    if (cached_) {
      cached_->read_to(texts, static_cast<int64_t>(read));
      return cached_->step();
    }
    const auto window = static_cast<size_t>(how_.window);
    const size_t begin = read > window ? read - window : 0;
    fill_rows(texts, begin, read, window, tokens_);
    kernels::Numbers numbers = {.last = static_cast<int64_t>(read - begin) - 1};
    executor_.run(program::Step::sample, numbers, [&](const run::Executor::Inputs& inputs) {
      if (inputs.has("tokens")) inputs.set("tokens", {tokens_, 0, how_.window}, 0);
    });
    return program::Step::sample;
  }

  run::Executor& executor_;
  const Continuation& how_;
  Draws draws_;
  std::optional<Generator> cached_;
  std::vector<int32_t> tokens_;  // [batch seq]
};

}  // namespace

std::optional<std::vector<Continued>> continue_texts(run::Executor& executor, comm::Communicator& all,
                                                     std::span<const std::vector<int32_t>> prompts,
                                                     const Continuation& how,
                                                     const std::function<bool(int64_t, int64_t)>& goes_on) {
  std::vector<Text> texts;
  size_t shortest = SIZE_MAX, longest = 0;
  for (const std::vector<int32_t>& prompt : prompts) {
    base::require(!prompt.empty(), "sample", "a text without a token");
    texts.push_back({.ids = prompt, .prompt = prompt.size(), .stream = how.first_stream + texts.size()});
    shortest = std::min(shortest, prompt.size());
    longest = std::max(longest, prompt.size());
  }
  Pass pass(executor, all, how);
  std::vector<Continued> made(texts.size());
  const int64_t most = static_cast<int64_t>(longest - shortest) + how.length;
  for (size_t read = shortest; !std::ranges::all_of(texts, &Text::ended); ++read) {
    if (!goes_on(static_cast<int64_t>(read - shortest), most)) return std::nullopt;
    pass.run(texts, made, read);
  }
  for (size_t i = 0; i < texts.size(); ++i)
    made[i].ids.assign(texts[i].ids.begin() + static_cast<std::ptrdiff_t>(texts[i].prompt), texts[i].ids.end());
  return made;
}

}  // namespace kintsugi::evaluate
