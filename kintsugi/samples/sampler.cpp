#include "kintsugi/samples/sampler.h"

#include "kintsugi/base/error.h"
#include "kintsugi/data/hash.h"
#include "kintsugi/samples/permutation.h"

namespace kintsugi::samples {
namespace {

std::vector<double> weights_of(const std::vector<WeightedFile>& files) {
  std::vector<double> weights;
  weights.reserve(files.size());
  for (const WeightedFile& file : files) weights.push_back(file.weight);
  return weights;
}

}  // namespace

Sampler::Sampler(std::vector<WeightedFile> files, SamplerOptions options)
    : files_(std::move(files)),
      options_(options),
      window_{.wrap = true,
              .reset_at_document = options.reset_at_document,
              .vocab_size = options.vocab_size,
              .begin = options.begin},
      mixture_(weights_of(files_)),
      parts_(parts_of_windows(options_.sequence, options_.reset_at_document)) {
  base::require(options_.sequence > 0, "data", "a sequence of {}", options_.sequence);
  for (const WeightedFile& source : files_) {
    if (source.file->num_tokens() > static_cast<uint64_t>(options_.sequence)) continue;
    throw base::UserError(
        "data",
        "\"{}.bin\" has {} tokens, and one sample of sequence {} needs {}; a shorter sequence or more text would do",
        source.file->prefix().string(), source.file->num_tokens(), options_.sequence, options_.sequence + 1);
  }
}

uint64_t Sampler::samples_per_epoch(size_t file) const {
  return files_[file].file->num_tokens() / static_cast<uint64_t>(options_.sequence);
}

Sampler::Place Sampler::locate(uint64_t sample) const {
  const Mixture::Place place = mixture_.locate(sample);
  const uint64_t tokens = files_[place.source].file->num_tokens();
  const uint64_t samples = samples_per_epoch(place.source);
  const uint64_t epoch = place.index / samples;
  const uint64_t key = data::mix(options_.seed, place.source, epoch);
  const uint64_t window = Permutation(samples, key)(place.index % samples);
  const uint64_t offset = data::multiply_high(data::mix(key), tokens);
  return {place.source, epoch, window, (offset + window * static_cast<uint64_t>(options_.sequence)) % tokens};
}

void Sampler::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_, [&](uint64_t row, const BatchView& view) {
    const Place place = locate(first + row);
    fill_window(*files_[place.file].file, place.start, window_, view);
  });
}

}  // namespace kintsugi::samples
