#include "kintsugi/evaluate/draw.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "kintsugi/base/error.h"
#include "kintsugi/evaluate/not_finite.h"
#include "kintsugi/exchange/not_finite.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::evaluate {

namespace {

// Keeps the smallest set of the most likely ids whose probabilities sum to top_p of the total over `ids`.
void keep_top_p(const Logits& logits, double scale, double top_p, std::vector<int64_t>& ids) {
  const auto before = [&](int64_t a, int64_t b) { return logits[a] > logits[b] || (logits[a] == logits[b] && a < b); };
  const auto largest = *std::ranges::min_element(ids, before);
  const auto weight = [&](int64_t id) {
    return std::exp((static_cast<double>(logits[id]) - static_cast<double>(logits[largest])) * scale);
  };
  double all = 0, sum = 0;
  for (const int64_t id : ids) all += weight(id);
  // A few ids nearly always suffice, so avoid a full sort.
  size_t sorted = 0, kept = 0;
  while (kept < ids.size() && sum < top_p * all) {
    if (kept == sorted) {
      const size_t next = std::min(ids.size(), std::max<size_t>(64, 8 * sorted));
      const auto at = [&](size_t i) { return ids.begin() + static_cast<std::ptrdiff_t>(i); };
      if (next < ids.size()) std::nth_element(at(sorted), at(next), ids.end(), before);
      std::sort(at(sorted), at(next), before);
      sorted = next;
    }
    sum += weight(ids[kept++]);
  }
  ids.resize(std::max<size_t>(kept, 1));
}

// The ids eligible for sampling, among logits above -infinity.
std::vector<int64_t> candidates(const Logits& logits, double scale, const SampleOptions& o) {
  std::vector<int64_t> ids;
  if (o.top_k > 0 && o.top_k < logits.count) {
    ids = kernels::host::most_likely(logits, o.top_k);
  } else {
    for (int64_t i = 0; i < logits.count; ++i)
      if (logits[i] > -std::numeric_limits<float>::infinity()) ids.push_back(i);
  }
  if (ids.empty()) return {kernels::host::most_likely(logits)};
  if (o.top_p < 1.0) keep_top_p(logits, scale, o.top_p, ids);
  if (o.min_p > 0.0) {
    float most = logits[ids[0]];
    for (const int64_t id : ids) most = std::max(most, logits[id]);
    const double least = std::log(o.min_p);
    std::erase_if(
        ids, [&](int64_t id) { return (static_cast<double>(logits[id]) - static_cast<double>(most)) * scale < least; });
  }
  return ids;
}

}  // namespace

std::vector<float> changed_logits(const Logits& logits, const SampleOptions& o, std::span<const int32_t> ids,
                                  size_t prompt) {
  std::vector<float> changed(static_cast<size_t>(logits.count));
  for (int64_t i = 0; i < logits.count; ++i) changed[static_cast<size_t>(i)] = logits[i];
  const auto with = [&](int32_t id, const auto& f) {
    if (id < 0 || static_cast<size_t>(id) >= changed.size()) return;
    float& x = changed[static_cast<size_t>(id)];
    x = static_cast<float>(f(static_cast<double>(x)));
  };
  for (const auto& [id, bias] : o.logit_bias) with(id, [&](double x) { return x + bias; });
  std::vector<int32_t> seen(ids.begin(), ids.end()),
      drawn(ids.begin() + static_cast<std::ptrdiff_t>(prompt), ids.end());
  const auto sort_unique = [](std::vector<int32_t>& list) {
    std::ranges::sort(list);
    const auto rest = std::ranges::unique(list);
    list.erase(rest.begin(), rest.end());
  };
  if (o.repetition_penalty != 1.0) {
    sort_unique(seen);
    for (const int32_t id : seen)
      with(id, [&](double x) { return x > 0 ? x / o.repetition_penalty : x * o.repetition_penalty; });
  }
  if (o.frequency_penalty != 0.0)
    for (const int32_t id : drawn) with(id, [&](double x) { return x - o.frequency_penalty; });
  if (o.presence_penalty != 0.0) {
    sort_unique(drawn);
    for (const int32_t id : drawn) with(id, [&](double x) { return x - o.presence_penalty; });
  }
  return changed;
}

int32_t sample_next(const Logits& logits, const SampleOptions& options, std::span<const int32_t> ids, size_t prompt,
                    uint64_t stream) {
  const auto bytes = static_cast<size_t>(logits.count * size_of(logits.dtype));
  if (exchange::count_not_finite({static_cast<const std::byte*>(logits.data), bytes}, logits.dtype) > 0)
    return kNotFinite;
  const uint64_t number = ids.size() - prompt;
  if (!options.changes_logits()) return sample(logits, options, number, stream);
  return sample(changed_logits(logits, options, ids, prompt), options, number, stream);
}

int32_t sample(const Logits& logits, const SampleOptions& options, uint64_t number, uint64_t stream) {
  if (options.temperature <= 0.0) return static_cast<int32_t>(kernels::host::most_likely(logits));
  const double scale = std::min(1 / options.temperature, 1e300);
  // 2^30 blocks of four words per number.
  const kernels::host::Noise noise = {kernels::random_key(options.seed, "generate"), stream, number << 30};
  if (options.top_p < 1.0 || options.min_p > 0.0)
    return static_cast<int32_t>(kernels::host::draw(logits, scale, noise, candidates(logits, scale, options)));
  const bool all = options.top_k <= 0 || options.top_k >= logits.count;
  return static_cast<int32_t>(
      all ? kernels::host::draw(logits, scale, noise)
          : kernels::host::draw(logits, scale, noise, kernels::host::most_likely(logits, options.top_k)));
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

namespace {

float log_probability(const Logits& logits, int32_t id) {
  return tensor::dispatch(logits.dtype, [&]<typename T>(T) {
    const T* x = static_cast<const T*>(logits.data);
    const auto at = [&](int64_t i) { return static_cast<double>(static_cast<tensor::arithmetic_t<T>>(x[i])); };
    double most = at(0), sum = 0;
    for (int64_t i = 1; i < logits.count; ++i) most = std::max(most, at(i));
    for (int64_t i = 0; i < logits.count; ++i) sum += std::exp(at(i) - most);
    return static_cast<float>(at(id) - most - std::log(sum));
  });
}

}  // namespace

std::vector<int32_t> Draws::draw(program::Step step, std::span<const Text> texts, size_t read,
                                 const SampleOptions& options, std::vector<float>* log_probabilities) const {
  std::vector<int32_t> next(texts.size());
  if (log_probabilities) log_probabilities->assign(texts.size(), 0.0f);
  if (!all_ || all_->rank() == from_) {
    const tensor::View out = executor_.output(step, "logits");  // [batch vocab]
    const auto rows = static_cast<size_t>(out.shape().size("batch")),
               columns = static_cast<size_t>(out.shape().size("vocab")),
               ids = options.vocab > 0 ? static_cast<size_t>(options.vocab) : columns;
    base::require(rows == texts.size() && ids <= columns, "draw", "{} texts of {} ids have logits {}", texts.size(),
                  ids, to_string(out.shape()));
    std::vector<float> narrow;  // converted from fp64
    if (out.dtype() == tensor::DType::f64) narrow.assign(out.as<double>().begin(), out.as<double>().end());
    const tensor::DType dtype = narrow.empty() ? out.dtype() : tensor::DType::f32;
    const std::byte* const data = narrow.empty() ? out.data : reinterpret_cast<const std::byte*>(narrow.data());
    for (size_t i = 0; i < rows; ++i) {
      if (!texts[i].needs_one(read)) continue;
      const std::byte* const row = data + i * columns * static_cast<size_t>(tensor::size_of(dtype));
      next[i] = sample_next({row, static_cast<int64_t>(ids), dtype}, options, std::span(texts[i].ids).first(read),
                            texts[i].prompt, texts[i].stream);
      if (log_probabilities && next[i] != kNotFinite)
        (*log_probabilities)[i] = log_probability({row, static_cast<int64_t>(columns), dtype}, next[i]);
    }
  }
  if (all_) all_->wait(all_->broadcast(std::as_writable_bytes(std::span(next)), from_));
  if (all_ && log_probabilities)
    all_->wait(all_->broadcast(std::as_writable_bytes(std::span(*log_probabilities)), from_));
  if (std::ranges::find(next, kNotFinite) != next.end())
    fail_not_finite("generate", fmt::format("the logits after {} tokens of a text", read), executor_, all_);
  return next;
}

}  // namespace kintsugi::evaluate
