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

Generator::Generator(run::Executor& executor)
    : executor_(executor), prompt_(executor.input("prefill", "tokens")), token_(executor.input("decode", "tokens")) {
  for (const program::StateInfo& s : executor.program().states)
    if (s.kind == "cache") capacity_ = s.whole.shape.size("key_seq");
  base::require(capacity_ >= prompt_.size("seq"), "generate", "caches of {} for prompts of {}", capacity_,
                prompt_.size("seq"));
}

std::span<const float> Generator::logits(std::string_view list) {
  const tensor::View out = executor_.output(list, "logits");
  logits_.resize(static_cast<size_t>(out.elements()));
  tensor::dispatch(out.dtype(), [&]<typename T>(T) {
    const std::span<T> x = out.as<T>();
    for (size_t i = 0; i < x.size(); ++i) logits_[i] = static_cast<float>(x[i]);
  });
  return logits_;
}

std::span<const float> Generator::read(std::span<const int32_t> text) {
  const auto total = static_cast<int64_t>(text.size());
  base::require(total > 0 && total <= capacity_, "generate", "{} tokens for caches of {}", total, capacity_);
  const int64_t chunk = prompt_.size("seq");
  const std::span<int32_t> tokens = prompt_.as<int32_t>();
  for (int64_t done = 0; done < total;) {
    // What lies behind the text is padding: it writes keys that the next tokens replace before they are seen. A chunk
    // that would pass the caches' end begins earlier, and reads a few tokens twice.
    const int64_t begin = std::min(done, capacity_ - chunk), count = std::min(chunk, total - begin);
    std::fill(tokens.begin(), tokens.end(), 0);
    std::copy_n(text.begin() + begin, count, tokens.begin());
    kernels::Numbers numbers = {.position = begin, .last = count - 1};
    executor_.run("prefill", numbers, [](int64_t) {});
    done = begin + count;
  }
  position_ = total;
  return logits("prefill");
}

std::span<const float> Generator::feed(int32_t token) {
  base::require(position_ < capacity_, "generate", "the caches are full");
  token_.as<int32_t>()[0] = token;
  kernels::Numbers numbers = {.position = position_, .last = 0};
  executor_.run("decode", numbers, [](int64_t) {});
  ++position_;
  return logits("decode");
}

void Generator::generate(std::span<const int32_t> prompt, const SampleOptions& options,
                         const std::function<bool(int32_t)>& next) {
  std::vector<int32_t> text(prompt.begin(), prompt.end());
  const auto tail = [&](int64_t count) { return std::span(text).last(static_cast<size_t>(count)); };
  std::span<const float> scores = read(tail(std::min(capacity_, static_cast<int64_t>(text.size()))));
  for (uint64_t number = 0;; ++number) {
    const int32_t id = sample(scores, options, number);
    text.push_back(id);
    if (!next(id)) return;
    scores = position_ < capacity_ ? feed(id) : read(tail(std::max<int64_t>(1, capacity_ / 2)));
  }
}

}  // namespace kintsugi::evaluate
