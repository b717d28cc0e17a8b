#include "kintsugi/samples/image_samples.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>

#include "kintsugi/data/hash.h"

namespace kintsugi::samples {
namespace {

// The purpose of a sample's random number.
enum class Change : uint64_t { down = 100, right, flip, other, share };

// Of (0, 1).
double uniform(uint64_t word) {
  return (static_cast<double>(word >> 11) + 0.5) * 0x1p-53;
}

// From Beta(a, a) with 0 < a <= 1: x / (x + y), where x = u^(1/a) and y = v^(1/a) are accepted if x + y <= 1 (Joehnk
// 1964), which half of all pairs or more are. In logarithms, which do not underflow for a small a.
double draw_beta(double a, uint64_t key) {
  for (uint64_t pair = 0;; ++pair) {
    const double x = std::log(uniform(data::mix(key, 2 * pair))) / a,
                 y = std::log(uniform(data::mix(key, 2 * pair + 1))) / a,
                 sum = std::max(x, y) + std::log1p(std::exp(-std::abs(x - y)));
    if (sum <= 0) return std::exp(x - sum);
  }
}

// The range [first, last) of the result in which rows or columns of `size`, shifted by `by`, have values.
struct Kept {
  int64_t first, last;

  Kept(int64_t size, int64_t by) : first(std::max<int64_t>(0, -by)), last(std::min(size, size - by)) {}
};

}  // namespace

ImageChange change_of(const ImageOptions& o, uint64_t sample) {
  const auto draw = [&](Change what) { return data::mix(o.seed, sample, static_cast<uint64_t>(what)); };
  const auto moved = [&](Change what) {
    const auto most = static_cast<uint64_t>(2 * o.crop_padding + 1);
    return static_cast<int64_t>(data::multiply_high(draw(what), most)) - o.crop_padding;
  };
  return {
      .down = moved(Change::down), .right = moved(Change::right), .flipped = o.flip && draw(Change::flip) >> 63 == 1};
}

ImageBlend blend_of(const ImageOptions& o, uint64_t sample, uint64_t images) {
  const auto draw = [&](Change what) { return data::mix(o.seed, sample, static_cast<uint64_t>(what)); };
  return {.other = data::multiply_high(draw(Change::other), images),
          .share = static_cast<uint32_t>(std::lround(draw_beta(o.mixup, draw(Change::share)) * kMixWhole))};
}

void mix_into(uint32_t share, std::span<const std::byte> other, tensor::DType dtype, std::span<std::byte> image) {
  base::require(other.size() == image.size() && share <= kMixWhole, "samples", "an image of {} bytes is mixed with {}",
                image.size(), other.size());
  if (dtype == tensor::DType::u8) {
    for (size_t i = 0; i < image.size(); ++i) {
      const uint32_t sum = std::to_integer<uint32_t>(image[i]) * share +
                           std::to_integer<uint32_t>(other[i]) * (kMixWhole - share) + kMixWhole / 2;
      image[i] = static_cast<std::byte>(sum / kMixWhole);
    }
    return;
  }
  base::require(dtype == tensor::DType::f32, "samples", "images of {} are mixed", name_of(dtype));
  const float own = static_cast<float>(share) / kMixWhole;
  const auto* const y = reinterpret_cast<const float*>(other.data());
  auto* const x = reinterpret_cast<float*>(image.data());
  for (size_t i = 0; i < image.size() / sizeof(float); ++i) x[i] = own * x[i] + (1 - own) * y[i];
}

void apply(const ImageChange& change, int64_t channels, int64_t height, int64_t width, int64_t element,
           std::span<std::byte> image) {
  base::require(std::ssize(image) == channels * height * width * element, "samples", "an image of {} bytes",
                image.size());
  const Kept rows(height, change.down), columns(width, change.right);
  const int64_t row_bytes = width * element;
  for (int64_t c = 0; c < channels; ++c) {
    std::byte* const plane = image.data() + c * height * row_bytes;
    // Process rows in the direction of the shift, so that none is overwritten before it is read.
    for (int64_t i = 0; i < height; ++i) {
      const int64_t y = change.down >= 0 ? i : height - 1 - i;
      std::byte* const row = plane + y * row_bytes;
      if (y < rows.first || y >= rows.last) {
        std::memset(row, 0, static_cast<size_t>(row_bytes));
        continue;
      }
      const std::byte* const from = plane + (y + change.down) * row_bytes;
      std::memmove(row + columns.first * element, from + (columns.first + change.right) * element,
                   static_cast<size_t>((columns.last - columns.first) * element));
      std::memset(row, 0, static_cast<size_t>(columns.first * element));
      std::memset(row + columns.last * element, 0, static_cast<size_t>((width - columns.last) * element));
    }
    if (!change.flipped) continue;
    for (int64_t y = 0; y < height; ++y)
      for (int64_t left = 0, right = width - 1; left < right; ++left, --right)
        std::swap_ranges(plane + y * row_bytes + left * element, plane + y * row_bytes + (left + 1) * element,
                         plane + y * row_bytes + right * element);
  }
}

Part images_part(int64_t channels, int64_t depth, int64_t height, int64_t width, tensor::DType dtype) {
  Part part = {.name = "images", .dtype = dtype, .shape = {channels, height, width}};
  if (depth > 0) part.shape.insert(part.shape.begin() + 1, depth);
  return part;
}

Part pixel_classes_part(int64_t depth, int64_t height, int64_t width) {
  Part part = {.name = "pixel_classes", .dtype = tensor::DType::i32, .shape = {height, width}, .padding = kIgnored};
  if (depth > 0) part.shape.insert(part.shape.begin(), depth);
  return part;
}

Part fields_part(int64_t channels, int64_t depth, int64_t height, int64_t width) {
  Part part = targets_part(channels);
  part.shape = {height, width, channels};
  if (depth > 0) part.shape.insert(part.shape.begin(), depth);
  return part;
}

Parts mixed_labels() {
  Part classes = classes_part(), weights = weights_part();
  classes.name = "mixed_classes";
  weights.name = "mixed_weights";
  return {classes, weights};
}

ImageSamples::ImageSamples(std::shared_ptr<const images::ImageSet> set, ImageOptions options)
    : set_(std::move(set)),
      options_(options),
      other_options_(options),
      parts_{images_part(set_->channels(), set_->depth(), set_->height(), set_->width(), set_->dtype())} {
  switch (set_->label_kind()) {
    case images::LabelKind::classes:
      parts_.insert(parts_.end(), {classes_part(), weights_part()});
      break;
    case images::LabelKind::numbers:
      parts_.push_back(targets_part(set_->numbers()));
      break;
    case images::LabelKind::none:
      break;
    case images::LabelKind::pixels:
      parts_.insert(parts_.end(), {pixel_classes_part(set_->depth(), set_->height(), set_->width()), weights_part()});
      break;
    case images::LabelKind::fields:
      parts_.push_back(fields_part(set_->numbers(), set_->depth(), set_->height(), set_->width()));
      break;
  }
  if (options_.crop_padding >= std::min(set_->height(), set_->width()))
    throw base::UserError("images", "data.crop_padding {} is too large for images of {} x {}; it must be smaller",
                          options_.crop_padding, set_->height(), set_->width());
  if (options_.mixup == 0) return;
  base::require(set_->label_kind() != images::LabelKind::pixels, "samples", "mixup of classes of pixels");
  other_options_.seed = data::mix(options_.seed, static_cast<uint64_t>(Change::other));
  other_.resize(static_cast<size_t>(set_->files()[0].bytes_per_image()));
  if (set_->label_kind() == images::LabelKind::fields)
    other_fields_.resize(static_cast<size_t>(parts_.back().elements()));
  if (set_->label_kind() != images::LabelKind::classes) return;
  const Parts mixed = mixed_labels();
  parts_.insert(parts_.end(), mixed.begin(), mixed.end());
}

// Reads an image, cropped and flipped by its own random numbers.
void ImageSamples::read(const ImageOptions& options, uint64_t n, int64_t number, std::span<std::byte> image) const {
  set_->read(number, image);
  if (options.crop_padding > 0 || options.flip)
    apply(change_of(options, n), set_->channels() * std::max<int64_t>(set_->depth(), 1), set_->height(), set_->width(),
          tensor::size_of(set_->dtype()), image);
}

// The fields of an image, cropped and flipped as it is. Pixels that a crop shifts in have none.
void ImageSamples::read_fields(const ImageOptions& options, uint64_t n, int64_t number, std::span<float> fields) const {
  set_->read_fields(number, fields);
  if (options.crop_padding == 0 && !options.flip) return;
  const ImageChange change = change_of(options, n);
  const int64_t planes = std::max<int64_t>(set_->depth(), 1), height = set_->height(), width = set_->width(),
                channels = set_->numbers();
  apply(change, planes, height, width, channels * static_cast<int64_t>(sizeof(float)), std::as_writable_bytes(fields));
  const Kept rows(height, change.down), columns(width, change.right);
  for (int64_t pixel = 0; pixel < planes * height * width; ++pixel) {
    const int64_t y = pixel / width % height, x = change.flipped ? width - 1 - pixel % width : pixel % width;
    if (y < rows.first || y >= rows.last || x < columns.first || x >= columns.last)
      std::ranges::fill(fields.subspan(static_cast<size_t>(pixel * channels), static_cast<size_t>(channels)),
                        kNoTarget);
  }
}

void ImageSamples::mix(uint64_t n, const BatchView& row) const {
  const ImageBlend mixture = blend_of(options_, n, num_samples());
  const auto other = static_cast<int64_t>(mixture.other);
  for (const PartView& part : row.parts()) {
    if (part.name != "images") continue;
    const std::lock_guard guard(mutex_);
    read(other_options_, n, other, other_);
    mix_into(mixture.share, other_, part.dtype, row.bytes(part));
  }
  const float share = static_cast<float>(mixture.share) / kMixWhole;
  for (float& w : row.get<float>("weights")) w = share;
  for (int32_t& c : row.get<int32_t>("mixed_classes")) c = set_->label(other);
  for (float& w : row.get<float>("mixed_weights")) w = 1 - share;
  const std::span<float> targets = row.get<float>("targets");
  if (set_->label_kind() == images::LabelKind::fields) {
    if (targets.empty()) return;
    const std::lock_guard guard(mutex_);
    read_fields(other_options_, n, other, other_fields_);
    mix_into(mixture.share, std::as_bytes(std::span(other_fields_)), tensor::DType::f32,
             std::as_writable_bytes(targets));
    return;
  }
  for (size_t i = 0; i < targets.size(); ++i)
    targets[i] = share * targets[i] + (1 - share) * set_->numbers_of(other)[i];
}

void ImageSamples::fill(uint64_t first, const BatchView& batch) const {
  require_parts(batch, parts_);
  for (int64_t row = 0; row < batch.rows(); ++row) {
    const uint64_t n = first + static_cast<uint64_t>(row), sample = options_.order(n, num_samples());
    const BatchView view = batch.row(row);
    const bool ended = sample >= num_samples();
    const auto number = static_cast<int64_t>(sample);
    for (const PartView& part : batch.parts()) {
      if (part.name != "images") continue;
      const std::span<std::byte> image = view.bytes(part);
      if (ended) {
        std::ranges::fill(image, std::byte{});
        continue;
      }
      read(options_, n, number, image);
    }
    for (int32_t& c : view.get<int32_t>("classes")) c = ended ? kIgnored : set_->label(number);
    if (const std::span<float> targets = view.get<float>("targets"); !targets.empty())
      fill_targets(n, number, ended, targets);
    if (const std::span<int32_t> pixels = view.get<int32_t>("pixel_classes"); !pixels.empty())
      fill_pixels(n, number, ended, pixels);
    std::ranges::fill(view.get<float>("weights"), 1.0f);
    if (options_.mixup > 0 && !ended) mix(n, view);
  }
}

void ImageSamples::fill_targets(uint64_t n, int64_t number, bool ended, std::span<float> targets) const {
  if (ended)
    std::ranges::fill(targets, kNoTarget);
  else if (set_->label_kind() == images::LabelKind::fields)
    read_fields(options_, n, number, targets);
  else
    std::ranges::copy(set_->numbers_of(number), targets.begin());
}

// Pixels that a crop shifts in have no class.
void ImageSamples::fill_pixels(uint64_t n, int64_t number, bool ended, std::span<int32_t> pixels) const {
  if (ended) {
    std::ranges::fill(pixels, kIgnored);
    return;
  }
  set_->read_classes(number, pixels);
  if (options_.crop_padding == 0 && !options_.flip) return;
  static_assert(kIgnored == -1);
  for (int32_t& c : pixels) ++c;
  apply(change_of(options_, n), std::max<int64_t>(set_->depth(), 1), set_->height(), set_->width(), sizeof(int32_t),
        std::as_writable_bytes(pixels));
  for (int32_t& c : pixels) --c;
}

}  // namespace kintsugi::samples
