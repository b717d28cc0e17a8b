#include "kintsugi/evaluate/draw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::evaluate {

int32_t sample(std::span<const float> logits, const SampleOptions& options, uint64_t number, uint64_t stream) {
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
  const double draw =
      kernels::random_word(kernels::random_key(options.seed, "generate"), stream, number) * 0x1p-32 * total;
  const auto at = std::upper_bound(weight.begin(), weight.end(), draw) - weight.begin();
  return ids[std::min(static_cast<size_t>(at), ids.size() - 1)];
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
    std::vector<float> logits(ids);
    tensor::dispatch(out.dtype(), [&]<typename T>(T) {
      for (size_t i = 0; i < rows; ++i) {
        if (!texts[i].needs_one(read)) continue;
        std::ranges::transform(out.as<T>().subspan(i * columns, ids), logits.begin(),
                               [](T x) { return static_cast<float>(x); });
        next[i] = sample(logits, options, read - texts[i].prompt, texts[i].stream);
      }
    });
  }
  if (all_) all_->wait(all_->broadcast(std::as_writable_bytes(std::span(next)), from_));
  return next;
}

}  // namespace kintsugi::evaluate
