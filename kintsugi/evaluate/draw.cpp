#include "kintsugi/evaluate/draw.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/random.h"

namespace kintsugi::evaluate {

int32_t sample(const Logits& logits, const SampleOptions& options, uint64_t number, uint64_t stream) {
  if (options.temperature <= 0.0) return static_cast<int32_t>(kernels::cpu::most_likely(logits));
  const double scale = std::min(1 / options.temperature, 1e300);
  // Of each number 2^30 blocks of four words.
  const kernels::cpu::Noise noise = {kernels::random_key(options.seed, "generate"), stream, number << 30};
  const bool all = options.top_k <= 0 || options.top_k >= logits.count;
  return static_cast<int32_t>(
      all ? kernels::cpu::draw(logits, scale, noise)
          : kernels::cpu::draw(logits, scale, noise, kernels::cpu::most_likely(logits, options.top_k)));
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
    std::vector<float> narrow;  // of fp64
    if (out.dtype() == tensor::DType::f64) narrow.assign(out.as<double>().begin(), out.as<double>().end());
    const tensor::DType dtype = narrow.empty() ? out.dtype() : tensor::DType::f32;
    const std::byte* const data = narrow.empty() ? out.data : reinterpret_cast<const std::byte*>(narrow.data());
    for (size_t i = 0; i < rows; ++i) {
      if (!texts[i].needs_one(read)) continue;
      const std::byte* const row = data + i * columns * static_cast<size_t>(tensor::size_of(dtype));
      next[i] = sample({row, static_cast<int64_t>(ids), dtype}, options, read - texts[i].prompt, texts[i].stream);
    }
  }
  if (all_) all_->wait(all_->broadcast(std::as_writable_bytes(std::span(next)), from_));
  return next;
}

}  // namespace kintsugi::evaluate
