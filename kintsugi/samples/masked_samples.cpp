#include "kintsugi/samples/masked_samples.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "kintsugi/data/hash.h"
#include "kintsugi/samples/permutation.h"

namespace kintsugi::samples {
namespace {

// The purpose of a sample's random number.
enum class Drawn : uint64_t { cut, follows, other, positions, kind, token };

uint64_t draw(const MaskedOptions& o, uint64_t sample, Drawn what, uint64_t i = 0) {
  return data::mix(o.seed, sample, static_cast<uint64_t>(what), i);
}

double share_of_one(uint64_t word) {
  return static_cast<double>(word >> 11) * 0x1p-53;
}

size_t length(int64_t token) {
  return token >= 0 ? 1 : 0;
}

// The layout of a sample.
struct Places {
  size_t begin = 0;   // of the first segment
  size_t cut = 0;     // tokens of the first segment
  size_t second = 0;  // beginning of the second

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
  const Parts& windows_parts = windows_->parts();
  const auto tokens = std::ranges::find(windows_parts, "tokens", &Part::name);
  base::require(tokens != windows_parts.end() && tokens->elements() == window_, "data",
                "masked samples need windows of {} tokens", window_);
  documents_ = std::ranges::find(windows_parts, "starts", &Part::name) != windows_parts.end();
  Part starts = starts_part(options_.sequence), types = types_part(options_.sequence);
  starts.optional = types.optional = true;
  parts_ = {tokens_part(options_.sequence), labels_part(options_.sequence), starts, types};
  if (options_.pairs) parts_.insert(parts_.end(), {classes_part(), weights_part()});
}

void MaskedSamples::fill(uint64_t first, const BatchView& batch) const {
  for_each_row(batch, parts_, [&](uint64_t at, const BatchView& view) { fill_sample(first + at, view); });
}

void MaskedSamples::fill_from_window(uint64_t sample, std::span<int32_t> tokens, std::span<int32_t> labels,
                                     std::span<int32_t> starts) const {
  const auto view = [](std::string_view name, std::span<int32_t> memory) {
    return PartView{.name = name,
                    .dtype = tensor::DType::i32,
                    .elements = std::ssize(memory),
                    .data = std::as_writable_bytes(memory).data()};
  };
  const std::array<PartView, 3> parts = {view("tokens", tokens), view("labels", labels), view("starts", starts)};
  windows_->fill(sample, {std::span(parts).first(starts.empty() ? 2 : 3), 1});
}

void MaskedSamples::fill_sample(uint64_t sample, const BatchView& row) const {
  const MaskedOptions& o = options_;
  const auto size = static_cast<size_t>(o.sequence);
  const std::span<int32_t> tokens = row.get<int32_t>("tokens"), labels = row.get<int32_t>("labels"),
                           starts = row.get<int32_t>("starts"), types = row.get<int32_t>("types"),
                           classes = row.get<int32_t>("classes");
  const std::span<float> weights = row.get<float>("weights");
  base::require(tokens.size() == size && labels.size() == size && starts.size() == size && types.size() == size, "data",
                "a masked sample needs all of its parts");
  if (sample >= count_) {
    std::ranges::fill(tokens, 0);
    std::ranges::fill(labels, kIgnored);
    std::ranges::fill(starts, 0);
    std::ranges::fill(types, 0);
    std::ranges::fill(classes, kIgnored);
    std::ranges::fill(weights, 0.0f);
    return;
  }
  // Labels, starts and types serve as memory for windows until they are written.
  const auto window = static_cast<size_t>(window_);
  Places places = {.begin = length(o.first), .cut = window, .second = 0};
  const std::span<int32_t> text = tokens.subspan(places.begin, window);
  fill_from_window(sample, text, labels.first(window), documents_ ? starts.first(window) : std::span<int32_t>());
  bool follows = true;
  if (o.pairs) {
    const auto inside = [&](size_t cut) { return !documents_ || starts[cut] == starts[cut - 1]; };
    places.cut = 1 + data::multiply_high(draw(o, sample, Drawn::cut), window - 1);
    for (size_t tried = 0; tried < window && !inside(places.cut); ++tried)
      places.cut = places.cut + 1 == window ? 1 : places.cut + 1;
    follows = count_ == 1 || draw(o, sample, Drawn::follows) % 2 == 0;
  }
  places.second = places.begin + places.cut + length(o.separator);
  if (o.pairs) {
    const std::span<int32_t> rest = text.subspan(places.cut);
    if (follows) {
      std::copy_backward(rest.begin(), rest.end(),
                         tokens.begin() + static_cast<std::ptrdiff_t>(places.second + rest.size()));
    } else {
      // Any other; one of many if windows do not end.
      const uint64_t many = std::min<uint64_t>(count_, uint64_t{1} << 40);
      const uint64_t far = 1 + data::multiply_high(draw(o, sample, Drawn::other), many - 1);
      fill_from_window((sample % many + far) % many, labels.first(window), types.first(window), {});
      std::copy_n(labels.begin(), rest.size(), tokens.begin() + static_cast<std::ptrdiff_t>(places.second));
    }
  }
  if (o.first >= 0) tokens[0] = static_cast<int32_t>(o.first);
  if (o.separator >= 0) {
    tokens[places.begin + places.cut] = static_cast<int32_t>(o.separator);
    if (o.pairs) tokens.back() = static_cast<int32_t>(o.separator);
  }
  std::ranges::fill(starts, 0);
  std::ranges::fill(types, 0);
  if (o.pairs) std::ranges::fill(types.subspan(places.second), 1);
  for (int32_t& label : classes) label = follows ? 0 : 1;
  std::ranges::fill(labels, kIgnored);
  const size_t hidden = std::max<size_t>(1, static_cast<size_t>(std::llround(o.share * static_cast<double>(window))));
  std::ranges::fill(weights, static_cast<float>(hidden));
  const Permutation order(window, draw(o, sample, Drawn::positions));
  for (size_t i = 0; i < hidden; ++i) {
    const size_t at = places.of(order(i));
    labels[at] = tokens[at];
    const double kind = share_of_one(draw(o, sample, Drawn::kind, i));
    if (kind < 0.8)
      tokens[at] = static_cast<int32_t>(o.mask);
    else if (kind < 0.9)
      tokens[at] =
          static_cast<int32_t>(data::multiply_high(draw(o, sample, Drawn::token, i), static_cast<uint64_t>(o.vocab)));
  }
}

}  // namespace kintsugi::samples
