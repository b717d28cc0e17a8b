#include "kintsugi/evaluate/draw.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numeric>
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

// The larger logit comes first, and of equal ones the lower id.
struct Above {
  std::span<const float> logits;

  bool operator()(int32_t a, int32_t b) const {
    const float x = logits[static_cast<size_t>(a)], y = logits[static_cast<size_t>(b)];
    return x != y ? x > y : a < b;
  }
};

// The ids of the k largest, in that order.
std::vector<int32_t> largest(std::span<const float> logits, size_t k) {
  const auto all = std::views::iota(0, static_cast<int32_t>(logits.size()));
  std::vector<int32_t> ids(k);
  std::partial_sort_copy(all.begin(), all.end(), ids.begin(), ids.end(), Above{logits});
  return ids;
}

// Relative to the largest logit, `top`.
double weight_of(float logit, float top, double temperature) {
  return std::exp((static_cast<double>(logit) - top) / temperature);
}

// The first of `ids`, the largest logit first, up to which weights sum to more than `draw`; the last if none does.
int32_t first_beyond(double draw, std::span<const int32_t> ids, std::span<const float> logits, float top,
                     double temperature) {
  double sum = 0;
  for (const int32_t id : ids) {
    sum += weight_of(logits[static_cast<size_t>(id)], top, temperature);
    if (sum > draw) return id;
  }
  return ids.back();
}

// Those of all ids, without sorting them: they are counted in bins by their distance from the largest, and only the bin
// in which the draw falls is sorted.
int32_t draw_of_all(std::span<const float> logits, float top, double temperature, double random) {
  constexpr size_t kBins = 1024;
  const auto scale = static_cast<float>(std::min(1 / temperature, 1e30));
  float lowest = top;
  for (const float x : logits) lowest = x < lowest ? x : lowest;
  const float most = std::min((top - lowest) * scale, 40.0f);  // what is further below weighs e^-40 at most
  const float bins_of_one = most > 0 ? (kBins - 1) / most : 0;
  std::vector<uint16_t> bin(logits.size());
  std::array<double, kBins> weight = {};
  for (size_t i = 0; i < logits.size(); ++i) {
    const float below = (top - logits[i]) * scale;
    bin[i] = static_cast<uint16_t>((below < most ? below : most) * bins_of_one);
    weight[bin[i]] += std::exp(-below);
  }
  double draw = random * std::accumulate(weight.begin(), weight.end(), 0.0);
  size_t found = 0, last = 0;
  for (; found < kBins && !(weight[found] > draw); ++found)
    if (weight[found] > 0) draw -= weight[found], last = found;
  if (found == kBins) found = last;  // by rounding
  std::vector<int32_t> ids;
  for (size_t i = 0; i < bin.size(); ++i)
    if (bin[i] == found) ids.push_back(static_cast<int32_t>(i));
  std::ranges::sort(ids, Above{logits});
  return first_beyond(draw, ids, logits, top, temperature);
}

}  // namespace

int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number, uint64_t stream) {
  const int32_t first = most_likely(logits);
  if (options.temperature <= 0.0) return first;
  const float top = logits[static_cast<size_t>(first)];
  const double random = kernels::random_word(kernels::random_key(options.seed, "generate"), stream, number) * 0x1p-32;
  if (options.top_k <= 0 || options.top_k >= static_cast<int64_t>(logits.size()))
    return draw_of_all(logits, top, options.temperature, random);
  const std::vector<int32_t> ids = largest(logits, static_cast<size_t>(options.top_k));
  double total = 0;
  for (const int32_t id : ids) total += weight_of(logits[static_cast<size_t>(id)], top, options.temperature);
  return first_beyond(random * total, ids, logits, top, options.temperature);
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
