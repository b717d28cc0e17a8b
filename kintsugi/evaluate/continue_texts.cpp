#include "kintsugi/evaluate/continue_texts.h"

#include <algorithm>

#include "kintsugi/base/error.h"

namespace kintsugi::evaluate {
namespace {

constexpr program::Step kStep = program::Step::sample;

// The first rank that has the logits.
int logits_rank(const run::Executor& executor, comm::Communicator& all) {
  const int32_t mine = executor.has_output(kStep, "logits") ? 1 : 0;
  std::vector<int32_t> every(static_cast<size_t>(all.size()));
  all.wait(all.all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  const auto found = std::ranges::find(every, 1);
  base::require(found != every.end(), "sample", "no rank has the logits");
  return static_cast<int>(found - every.begin());
}

// A text, and how far it is.
struct Text {
  std::vector<int32_t> ids;
  size_t prompt = 0;
  bool ended = false;

  bool needs_one(size_t read) const { return !ended && ids.size() == read; }
};

class Pass {
 public:
  Pass(run::Executor& executor, comm::Communicator& all, const Continuation& how)
      : executor_(executor), all_(all), how_(how), from_(logits_rank(executor, all)) {}

  // Reads `read` tokens of each text, and draws the next of those that have no more.
  void run(std::vector<Text>& texts, size_t read) {
    feed(texts, read);
    std::vector<int32_t> next(texts.size());
    if (all_.rank() == from_) draw(texts, read, next);
    all_.wait(all_.broadcast(std::as_writable_bytes(std::span(next)), from_));
    for (size_t i = 0; i < texts.size(); ++i) {
      if (!texts[i].needs_one(read)) continue;
      texts[i].ended = next[i] == how_.end;
      if (!texts[i].ended) texts[i].ids.push_back(next[i]);
      if (static_cast<int64_t>(texts[i].ids.size() - texts[i].prompt) >= how_.length) texts[i].ended = true;
    }
  }

 private:
  void feed(const std::vector<Text>& texts, size_t read) {
    const auto window = static_cast<size_t>(how_.window);
    const size_t begin = read > window ? read - window : 0;
    tokens_.assign(texts.size() * window, 0);
    for (size_t i = 0; i < texts.size(); ++i)
      for (size_t at = begin; at < std::min(read, texts[i].ids.size()); ++at)
        tokens_[i * window + at - begin] = texts[i].ids[at];
    kernels::Numbers numbers = {.last = static_cast<int64_t>(read - begin) - 1};
    executor_.run(kStep, numbers, [&](const run::Executor::Inputs& inputs) {
      inputs.set("tokens", {tokens_, 0, how_.window}, 0);
    });
  }

  void draw(const std::vector<Text>& texts, size_t read, std::vector<int32_t>& next) const {
    const tensor::View out = executor_.output(kStep, "logits");  // [batch vocab]
    const auto rows = static_cast<size_t>(out.shape().size("batch")),
               columns = static_cast<size_t>(out.shape().size("vocab"));
    base::require(rows == texts.size() && static_cast<size_t>(how_.vocab) <= columns, "sample", "{} texts of {} ids have logits {}",
                  texts.size(), how_.vocab, to_string(out.shape()));
    std::vector<float> logits(static_cast<size_t>(how_.vocab));
    tensor::dispatch(out.dtype(), [&]<typename T>(T) {
      for (size_t i = 0; i < rows; ++i) {
        if (!texts[i].needs_one(read)) continue;
        std::ranges::transform(out.as<T>().subspan(i * columns, logits.size()), logits.begin(),
                               [](T x) { return static_cast<float>(x); });
        next[i] = sample(logits, how_.sample, read - texts[i].prompt);
      }
    });
  }

  run::Executor& executor_;
  comm::Communicator& all_;
  const Continuation& how_;
  int from_;
  std::vector<int32_t> tokens_;  // [batch seq]
};

}  // namespace

std::optional<std::vector<std::vector<int32_t>>> continue_texts(run::Executor& executor, comm::Communicator& all,
                                                                std::span<const std::vector<int32_t>> prompts,
                                                                const Continuation& how,
                                                                const std::function<bool(int64_t, int64_t)>& goes_on) {
  std::vector<Text> texts;
  size_t shortest = SIZE_MAX, longest = 0;
  for (const std::vector<int32_t>& prompt : prompts) {
    base::require(!prompt.empty(), "sample", "a text without a token");
    texts.push_back({prompt, prompt.size()});
    shortest = std::min(shortest, prompt.size());
    longest = std::max(longest, prompt.size());
  }
  Pass pass(executor, all, how);
  const int64_t most = static_cast<int64_t>(longest - shortest) + how.length;
  for (size_t read = shortest; !std::ranges::all_of(texts, &Text::ended); ++read) {
    if (!goes_on(static_cast<int64_t>(read - shortest), most)) return std::nullopt;
    pass.run(texts, read);
  }
  std::vector<std::vector<int32_t>> made;
  for (const Text& text : texts)
    made.emplace_back(text.ids.begin() + static_cast<std::ptrdiff_t>(text.prompt), text.ids.end());
  return made;
}

}  // namespace kintsugi::evaluate
