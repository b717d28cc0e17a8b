#include "kintsugi/evaluate/generator.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::evaluate {

int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number) {
  if (options.temperature <= 0.0)
    return static_cast<int32_t>(std::max_element(logits.begin(), logits.end()) - logits.begin());
  std::vector<int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  const auto above = [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  };
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(ids.size())) {
    std::nth_element(ids.begin(), ids.begin() + options.top_k - 1, ids.end(), above);
    ids.resize(static_cast<size_t>(options.top_k));
  }
  std::sort(ids.begin(), ids.end(), above);
  const double top = logits[static_cast<size_t>(ids[0])];
  std::vector<double> weight;
  double total = 0;
  for (int32_t id : ids)
    weight.push_back(total += std::exp((logits[static_cast<size_t>(id)] - top) / options.temperature));
  const double draw = kernels::random_word(kernels::random_key(options.seed, "generate"), 0, number) * 0x1p-32 * total;
  const auto at = std::upper_bound(weight.begin(), weight.end(), draw) - weight.begin();
  return ids[std::min(static_cast<size_t>(at), ids.size() - 1)];
}

int64_t prompt_bucket(int64_t prompt, int64_t cache) {
  int64_t bucket = 16;
  while (bucket < prompt && bucket < 512) bucket *= 2;
  return std::min(bucket, cache);
}

namespace {

// The sizes that can be read from the program of one stage; other stages have other parts.
struct Known {
  int64_t capacity = 0;  // of the caches
  int64_t prompt = 0;    // of the list `prefill`
  int64_t has_logits = 0;
};

Known known_here(const run::Executor& executor) {
  Known k = {.has_logits = executor.has_output(program::Step::decode, "logits")};
  for (const program::StateInfo& s : executor.program().states)
    if (s.kind == program::StateKind::cache) k.capacity = s.whole.shape.size("key_seq");
  for (const program::Buffer& b : executor.program().buffers)
    if (b.input == "tokens") k.prompt = std::max(k.prompt, b.whole.size("seq"));
  return k;
}

}  // namespace

Generator::Generator(run::Executor& executor, comm::Communicator* all) : executor_(executor), all_(all) {
  std::vector<Known> every = {known_here(executor)};
  if (all_) {
    const Known mine = every[0];
    every.resize(static_cast<size_t>(all_->size()));
    all_->wait(all_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  }
  int64_t prompt = 0;
  for (const Known& k : every) {
    capacity_ = std::max(capacity_, k.capacity);
    prompt = std::max(prompt, k.prompt);
  }
  while (logits_rank_ < static_cast<int>(every.size()) && !every[static_cast<size_t>(logits_rank_)].has_logits)
    ++logits_rank_;
  base::require(logits_rank_ < static_cast<int>(every.size()), "generate", "no rank has the logits");
  base::require(capacity_ >= prompt, "generate", "caches of {} for prompts of {}", capacity_, prompt);
  prompt_.resize(static_cast<size_t>(prompt));
}

void Generator::run(program::Step step, kernels::Numbers numbers, std::span<const int32_t> tokens) {
  executor_.run(step, numbers, [&](const run::Executor::Inputs& inputs) {
    inputs.set("tokens", {tokens, 0, static_cast<int64_t>(tokens.size())}, 0);
  });
  if (!executor_.has_output(step, "logits")) return;
  const tensor::View out = executor_.output(step, "logits");
  logits_.resize(static_cast<size_t>(out.elements()));
  tensor::dispatch(out.dtype(), [&]<typename T>(T) {
    const std::span<T> x = out.as<T>();
    for (size_t i = 0; i < x.size(); ++i) logits_[i] = static_cast<float>(x[i]);
  });
}

std::span<const float> Generator::read(std::span<const int32_t> text) {
  const auto total = static_cast<int64_t>(text.size());
  base::require(total > 0 && total <= capacity_, "generate", "{} tokens for caches of {}", total, capacity_);
  const auto chunk = static_cast<int64_t>(prompt_.size());
  for (int64_t done = 0; done < total;) {
    // Positions after the text are padding: they write keys that the next tokens replace before they are seen. A chunk
    // that would pass the caches' end begins earlier, and reads a few tokens twice.
    const int64_t begin = std::min(done, capacity_ - chunk), count = std::min(chunk, total - begin);
    std::fill(prompt_.begin(), prompt_.end(), 0);
    std::copy_n(text.begin() + begin, count, prompt_.begin());
    run(program::Step::prefill, {.position = begin, .last = count - 1}, prompt_);
    done = begin + count;
  }
  position_ = total;
  return logits_;
}

std::span<const float> Generator::feed(int32_t token) {
  base::require(position_ < capacity_, "generate", "the caches are full");
  run(program::Step::decode, {.position = position_, .last = 0}, {&token, 1});
  ++position_;
  return logits_;
}

// The next id, on every rank.
int32_t Generator::choose(const SampleOptions& options, uint64_t number) {
  int32_t id = 0;
  if (!all_ || all_->rank() == logits_rank_) id = sample(logits_, options, number);
  if (all_) all_->wait(all_->broadcast(std::as_writable_bytes(std::span(&id, 1)), logits_rank_));
  return id;
}

bool Generator::all_continue(bool mine) {
  const int32_t here = mine ? 1 : 0;
  int32_t every = here;
  if (all_)
    all_->wait(all_->all_reduce(std::as_bytes(std::span(&here, 1)), std::as_writable_bytes(std::span(&every, 1)),
                                tensor::DType::i32, comm::Reduction::min));
  return every != 0;
}

void Generator::generate(std::span<const int32_t> prompt, const SampleOptions& options,
                         const std::function<bool(int32_t)>& next) {
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  const auto tail = [&](int64_t count) { return std::span(text).last(static_cast<size_t>(count)); };
  read(tail(std::min(capacity_, static_cast<int64_t>(text.size()))));
  for (uint64_t number = 0;; ++number) {
    const int32_t id = choose(options, number);
    text.push_back(id);
    if (!all_continue(next(id))) return;
    position_ < capacity_ ? feed(id) : read(tail(std::max<int64_t>(1, capacity_ / 2)));
  }
}

}  // namespace kintsugi::evaluate
