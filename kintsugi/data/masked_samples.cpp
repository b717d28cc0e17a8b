#include "kintsugi/data/masked_samples.h"

#include <algorithm>
#include <cmath>

#include "kintsugi/data/hash.h"
#include "kintsugi/data/permutation.h"

namespace kintsugi::data {
namespace {

// What a random number of a sample decides.
enum class Drawn : uint64_t { cut, follows, other, positions, kind, token };

uint64_t draw(const MaskedOptions& o, uint64_t sample, Drawn what, uint64_t i = 0) {
  return mix(o.seed, sample, static_cast<uint64_t>(what), i);
}

double share_of_one(uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

size_t length(int64_t token) {
  return token >= 0 ? 1 : 0;
}

// What a sample is made of, by place.
struct Places {
  size_t begin = 0;   // of the first part
  size_t cut = 0;     // tokens of the first part
  size_t second = 0;  // where the second begins

  size_t of(size_t token) const { return token < cut ? begin + token : second + (token - cut); }
};

}  // namespace

int64_t window_of(const MaskedOptions& o) {
  const auto around = static_cast<int64_t>(length(o.first) + length(o.separator) * (o.pairs ? 2 : 1));
  const int64_t window = o.sequence - around, least = o.pairs ? 2 : 1;
  if (window < least)
    throw base::UserError("data",
                          "train.sequence {} is too short: a sample needs {} tokens around its text, and {} of it",
                          o.sequence, around, least);
  return window;
}

MaskedSamples::MaskedSamples(std::unique_ptr<const SampleSource> windows, uint64_t count, MaskedOptions options)
    : windows_(std::move(windows)), count_(count), options_(options), window_(window_of(options_)) {
  base::require(windows_->row().tokens == window_, "data", "windows of {} tokens for samples with {}",
                windows_->row().tokens, window_);
}

RowSizes MaskedSamples::row() const {
  const int64_t n = options_.sequence, pair = options_.pairs ? 1 : 0;
  return {.tokens = n, .labels = n, .starts = n, .types = n, .classes = pair, .weights = pair};
}

void MaskedSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, row(), [&](uint64_t at, const BatchView& view) { fill_sample(first + at, view); });
}

void MaskedSamples::fill_sample(uint64_t sample, const BatchView& row) const {
  const MaskedOptions& o = options_;
  const auto size = static_cast<size_t>(o.sequence);
  base::require(
      row.tokens.size() == size && row.labels.size() == size && row.starts.size() == size && row.types.size() == size,
      "data", "a masked sample needs all of its parts");
  if (sample >= count_) {
    std::ranges::fill(row.tokens, 0);
    std::ranges::fill(row.labels, kIgnored);
    std::ranges::fill(row.starts, 0);
    std::ranges::fill(row.types, 0);
    std::ranges::fill(row.classes, kIgnored);
    std::ranges::fill(row.weights, 0.0f);
    return;
  }
  // Labels, starts and types serve as memory for windows until they are written.
  const auto window = static_cast<size_t>(window_);
  Places places = {.begin = length(o.first), .cut = window, .second = 0};
  const std::span<int32_t> tokens = row.tokens.subspan(places.begin, window), starts = row.starts.first(window);
  const bool documents = windows_->row().starts > 0;
  windows_->fill(sample, {tokens, row.labels.first(window), documents ? starts : std::span<int32_t>{}, {}});
  bool follows = true;
  if (o.pairs) {
    const auto inside = [&](size_t cut) { return !documents || starts[cut] == starts[cut - 1]; };
    places.cut = 1 + multiply_high(draw(o, sample, Drawn::cut), window - 1);
    for (size_t tried = 0; tried < window && !inside(places.cut); ++tried)
      places.cut = places.cut + 1 == window ? 1 : places.cut + 1;
    follows = count_ == 1 || draw(o, sample, Drawn::follows) % 2 == 0;
  }
  places.second = places.begin + places.cut + length(o.separator);
  if (o.pairs) {
    const std::span<int32_t> rest = tokens.subspan(places.cut);
    if (follows) {
      std::copy_backward(rest.begin(), rest.end(),
                         row.tokens.begin() + static_cast<std::ptrdiff_t>(places.second + rest.size()));
    } else {
      // Any other; where windows do not end, one of many.
      const uint64_t many = std::min<uint64_t>(count_, uint64_t{1} << 40);
      const uint64_t far = 1 + multiply_high(draw(o, sample, Drawn::other), many - 1);
      windows_->fill((sample % many + far) % many, {row.labels.first(window), row.types.first(window), {}, {}});
      std::copy_n(row.labels.begin(), rest.size(), row.tokens.begin() + static_cast<std::ptrdiff_t>(places.second));
    }
  }
  if (o.first >= 0) row.tokens[0] = static_cast<int32_t>(o.first);
  if (o.separator >= 0) {
    row.tokens[places.begin + places.cut] = static_cast<int32_t>(o.separator);
    if (o.pairs) row.tokens.back() = static_cast<int32_t>(o.separator);
  }
  std::ranges::fill(row.starts, 0);
  std::ranges::fill(row.types, 0);
  if (o.pairs) std::ranges::fill(row.types.subspan(places.second), 1);
  for (int32_t& label : row.classes) label = follows ? 0 : 1;
  std::ranges::fill(row.labels, kIgnored);
  const size_t hidden = std::max<size_t>(1, static_cast<size_t>(std::llround(o.share * static_cast<double>(window))));
  std::ranges::fill(row.weights, static_cast<float>(hidden));
  const Permutation order(window, draw(o, sample, Drawn::positions));
  for (size_t i = 0; i < hidden; ++i) {
    const size_t at = places.of(order(i));
    row.labels[at] = row.tokens[at];
    const double kind = share_of_one(draw(o, sample, Drawn::kind, i));
    if (kind < 0.8)
      row.tokens[at] = static_cast<int32_t>(o.mask);
    else if (kind < 0.9)
      row.tokens[at] =
          static_cast<int32_t>(multiply_high(draw(o, sample, Drawn::token, i), static_cast<uint64_t>(o.vocab)));
  }
}

}  // namespace kintsugi::data
