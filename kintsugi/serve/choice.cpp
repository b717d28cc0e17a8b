#include "kintsugi/serve/choice.h"

#include <algorithm>
#include <utility>

namespace kintsugi::serve {

Choice::Choice(const text::Tokenizer& tokenizer, Generation generation, std::span<const int32_t> before, Ends ends)
    : generation_(std::move(generation)),
      ends_(std::move(ends.tokens)),
      decoder_(tokenizer, before),
      stop_(std::move(ends.stops)) {}

Choice::Part Choice::take(std::chrono::milliseconds within) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, within, [&] { return part_.ended || !part_.tokens.empty() || !part_.prompt.empty(); });
  Part taken = std::move(part_);
  part_ = {.prompt = {}, .text = {}, .tokens = {}, .ended = taken.ended, .finish = taken.finish, .failure = {}};
  return taken;
}

void Choice::prompt_read(std::vector<TokenScore> scores) {
  const std::lock_guard lock(mutex_);
  part_.prompt = std::move(scores);
  if (generation_.max_tokens == 0) part_.finish = Finish::length;
  changed_.notify_one();
}

bool Choice::add(TokenScore token) {
  const bool ends = std::ranges::find(ends_, token.id) != ends_.end();
  const std::string text = ends ? "" : stop_.push(decoder_.add(token.id));
  ++made_;
  const std::lock_guard lock(mutex_);
  part_.text += text;
  part_.tokens.push_back(std::move(token));
  if (ends || stop_.found()) {
    part_.finish = Finish::stop;
  } else if (made_ == generation_.max_tokens) {
    part_.finish = Finish::length;
  }
  changed_.notify_one();
  return part_.finish == Finish::none;
}

void Choice::fail(std::string why) {
  const std::lock_guard lock(mutex_);
  part_.failure = std::move(why);
}

void Choice::end() {
  std::string rest = stop_.found() ? "" : stop_.push(decoder_.flush());
  rest += stop_.finish();
  const std::lock_guard lock(mutex_);
  part_.text += rest;
  part_.ended = true;
  changed_.notify_one();
}

}  // namespace kintsugi::serve
