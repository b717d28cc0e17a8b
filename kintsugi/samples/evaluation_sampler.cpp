#include "kintsugi/samples/evaluation_sampler.h"

#include "kintsugi/base/error.h"

namespace kintsugi::samples {

EvaluationSampler::EvaluationSampler(std::shared_ptr<const data::TokenFile> file, EvaluationOptions options)
    : file_(std::move(file)),
      options_(options),
      parts_(parts_of_windows(options_.sequence, options_.reset_at_document)) {
  base::require(options_.sequence > 0, "data", "a sequence of {}", options_.sequence);
  if (file_->num_tokens() < 2) {
    throw base::UserError("data", "\"{}.bin\" has {} tokens; an evaluation needs at least 2", file_->prefix().string(),
                          file_->num_tokens());
  }
}

uint64_t EvaluationSampler::num_samples() const {
  const auto sequence = static_cast<uint64_t>(options_.sequence);
  const uint64_t predicted = file_->num_tokens() - (options_.begin >= 0 ? 0 : 1);
  return (predicted + sequence - 1) / sequence;
}

void EvaluationSampler::fill(uint64_t first, const BatchView& batch) const {
  const WindowOptions options = {.wrap = false,
                                 .reset_at_document = options_.reset_at_document,
                                 .vocab_size = options_.vocab_size,
                                 .begin = options_.begin};
  for_each_row(batch, parts_, [&](uint64_t row, const BatchView& view) {
    // A sample past the last is all padding, excluding even the file's last token, which predicts nothing.
    const uint64_t sample = first + row;
    const uint64_t start =
        sample < num_samples() ? sample * static_cast<uint64_t>(options_.sequence) : file_->num_tokens();
    fill_window(*file_, start, options, view);
  });
}

}  // namespace kintsugi::samples
