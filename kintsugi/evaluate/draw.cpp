#include "kintsugi/evaluate/draw.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <numbers>
#include <ranges>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::evaluate {
namespace {

// The first of the largest. Some at a time, whose largest are found side by side.
template <typename T>
int32_t most_likely(std::span<const T> logits) {
  constexpr size_t kSome = 256, kLanes = 8;
  float most = -std::numeric_limits<float>::infinity();
  size_t found = 0;
  for (size_t begin = 0; begin < logits.size(); begin += kSome) {
    const std::span some = logits.subspan(begin, std::min(kSome, logits.size() - begin));
    float lanes[kLanes];
    std::fill_n(lanes, kLanes, most);
    for (size_t i = 0; i + kLanes <= some.size(); i += kLanes)
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const auto x = static_cast<float>(some[i + lane]);
        lanes[lane] = x > lanes[lane] ? x : lanes[lane];
      }
    float here = *std::max_element(lanes, lanes + kLanes);
    for (size_t i = some.size() / kLanes * kLanes; i < some.size(); ++i)
      here = std::max(here, static_cast<float>(some[i]));
    if (here > most) most = here, found = begin;
  }
  for (size_t i = found; i < logits.size(); ++i)
    if (static_cast<float>(logits[i]) == most) return static_cast<int32_t>(i);
  return 0;  // none is a number
}

// The k largest logits have these ids; of equal ones those with the lower id.
std::vector<int32_t> largest(std::span<const float> logits, size_t k) {
  const auto all = std::views::iota(0, static_cast<int32_t>(logits.size()));
  std::vector<int32_t> ids(k);
  std::partial_sort_copy(all.begin(), all.end(), ids.begin(), ids.end(), [&](int32_t a, int32_t b) {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  });
  return ids;
}

// The one of some ids whose score is the largest: its logit over the temperature and a number of its own, which is
// drawn from Gumbel's distribution (Maddison, Tarlow, Minka 2014, "A* sampling", section 2).
class Winner {
 public:
  Winner(std::span<const float> logits, int32_t first, double temperature)
      : logits_(logits),
        top_(logits[static_cast<size_t>(first)]),
        scale_(std::min(1 / temperature, 1e300)),
        found_(first) {}

  // `word`: random, of this id.
  void consider(size_t id, uint32_t word) {
    const double logit = (logits_[id] - top_) * scale_;
    // With u = (word + 1/2) / 2^32 the number is -log(-log u), and at most -log(1 - u).
    if (!(logit + std::numbers::ln2 * (1 + std::countl_zero(~word)) > best_)) return;
    const double score = logit - std::log(-std::log((word + 0.5) * 0x1p-32));
    if (score > best_) best_ = score, found_ = static_cast<int32_t>(id);
  }
  int32_t id() const { return found_; }

 private:
  std::span<const float> logits_;
  double top_, scale_, best_ = -std::numeric_limits<double>::infinity();
  int32_t found_;
};

}  // namespace

int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number, uint64_t stream) {
  const int32_t first = most_likely(logits);
  if (options.temperature <= 0.0) return first;
  const std::array<uint32_t, 2> key = kernels::random_key(options.seed, "generate");
  const uint64_t begin = number << 30;  // of four words each
  Winner winner(logits, first, options.temperature);
  if (options.top_k > 0 && options.top_k < static_cast<int64_t>(logits.size())) {
    for (const int32_t id : largest(logits, static_cast<size_t>(options.top_k)))
      winner.consider(static_cast<size_t>(id),
                      kernels::random_word(key, stream, 4 * begin + static_cast<uint64_t>(id)));
    return winner.id();
  }
  for (size_t id = 0; id < logits.size(); id += 4) {
    const std::array<uint32_t, 4> words = kernels::random_block(key, stream, begin + id / 4);
    for (size_t i = 0; i < std::min<size_t>(4, logits.size() - id); ++i) winner.consider(id + i, words[i]);
  }
  return winner.id();
}

void fill_rows(std::span<const Text> texts, size_t begin, size_t end, size_t columns, std::vector<int32_t>& rows) {
  rows.assign(texts.size() * columns, 0);
  for (size_t i = 0; i < texts.size(); ++i)
    for (size_t at = begin; at < std::min(end, texts[i].ids.size()); ++at)
      rows[i * columns + at - begin] = texts[i].ids[at];
}

Draws::Draws(const run::Executor& executor, program::Step step, comm::Communicator* all)
    : executor_(executor), all_(all) {
  const int32_t mine = executor.has_output(step, "logits") ? 1 : 0;
  std::vector<int32_t> every = {mine};
  if (all_) {
    every.resize(static_cast<size_t>(all_->size()));
    all_->wait(all_->all_gather(std::as_bytes(std::span(&mine, 1)), std::as_writable_bytes(std::span(every))));
  }
  const auto found = std::ranges::find(every, 1);
  base::require(found != every.end(), "draw", "no rank has the logits");
  from_ = static_cast<int>(found - every.begin());
}

std::vector<int32_t> Draws::draw(program::Step step, std::span<const Text> texts, size_t read,
                                 const SampleOptions& options) const {
  std::vector<int32_t> next(texts.size());
  if (!all_ || all_->rank() == from_) {
    const tensor::View out = executor_.output(step, "logits");  // [batch vocab]
    const auto rows = static_cast<size_t>(out.shape().size("batch")),
               columns = static_cast<size_t>(out.shape().size("vocab")),
               ids = options.vocab > 0 ? static_cast<size_t>(options.vocab) : columns;
    base::require(rows == texts.size() && ids <= columns, "draw", "{} texts of {} ids have logits {}", texts.size(),
                  ids, to_string(out.shape()));
    tensor::dispatch(out.dtype(), [&]<typename T>(T) {
      std::vector<float> wide;
      for (size_t i = 0; i < rows; ++i) {
        if (!texts[i].needs_one(read)) continue;
        const std::span<const T> logits = out.as<T>().subspan(i * columns, ids);
        if (options.temperature <= 0.0) {
          next[i] = most_likely(logits);
          continue;
        }
        wide.resize(ids);
        std::ranges::transform(logits, wide.begin(), [](T x) { return static_cast<float>(x); });
        next[i] = sample(wide, options, read - texts[i].prompt, texts[i].stream);
      }
    });
  }
  if (all_) all_->wait(all_->broadcast(std::as_writable_bytes(std::span(next)), from_));
  return next;
}

}  // namespace kintsugi::evaluate
