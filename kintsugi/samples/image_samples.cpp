#include "kintsugi/samples/image_samples.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "kintsugi/data/hash.h"

namespace kintsugi::samples {
namespace {

// What a random number of a sample decides.
enum class Change : uint64_t { down = 100, right, flip };

// Where rows or columns of `size`, moved by `by`, have values: [first, last) of the result.
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
  return {.down = moved(Change::down), .right = moved(Change::right), .flipped = o.flip && draw(Change::flip) >> 63 == 1};
}

void apply(const ImageChange& change, int64_t channels, int64_t height, int64_t width, int64_t element,
           std::span<std::byte> image) {
  base::require(std::ssize(image) == channels * height * width * element, "samples", "an image of {} bytes",
                image.size());
  const Kept rows(height, change.down), columns(width, change.right);
  const int64_t row_bytes = width * element;
  for (int64_t c = 0; c < channels; ++c) {
    std::byte* const plane = image.data() + c * height * row_bytes;
    // Rows move towards those that are done, so that none is overwritten before it is read.
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

Part images_part(int64_t channels, int64_t height, int64_t width, tensor::DType dtype) {
  return {.name = "images", .dtype = dtype, .shape = {channels, height, width}};
}

ImageSamples::ImageSamples(std::shared_ptr<const images::ImageSet> set, ImageOptions options)
    : set_(std::move(set)),
      options_(options),
      parts_{images_part(set_->channels(), set_->height(), set_->width(), set_->dtype()), classes_part(),
             weights_part()} {
  if (options_.crop_padding >= std::min(set_->height(), set_->width()))
    throw base::UserError("images", "data.crop_padding {} is too large for images of {} x {}; it must be smaller",
                          options_.crop_padding, set_->height(), set_->width());
}

void ImageSamples::fill(uint64_t first, const BatchView& batch) const {
  const bool changes = options_.crop_padding > 0 || options_.flip;
  require_parts(batch, parts_);
  for (const PartView& part : batch.parts()) {
    if (part.name != "images") continue;
    for (int64_t row = 0; row < batch.rows(); ++row) {
      const uint64_t n = first + static_cast<uint64_t>(row), sample = options_.order(n, num_samples());
      const std::span<std::byte> image = batch.row(row).bytes(part);
      if (sample >= num_samples()) {
        std::ranges::fill(image, std::byte{});
        continue;
      }
      set_->read(static_cast<int64_t>(sample), image);
      if (changes)
        apply(change_of(options_, n), set_->channels(), set_->height(), set_->width(), tensor::size_of(part.dtype),
              image);
    }
  }
  const std::span<int32_t> classes = batch.get<int32_t>("classes");
  for (size_t row = 0; row < classes.size(); ++row) {
    const uint64_t sample = options_.order(first + row, num_samples());
    classes[row] = sample < num_samples() ? set_->label(static_cast<int64_t>(sample)) : kIgnored;
  }
  std::ranges::fill(batch.get<float>("weights"), 1.0f);
}

}  // namespace kintsugi::samples
