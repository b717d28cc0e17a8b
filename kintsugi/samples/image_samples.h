// Samples that are images, each with a class, numbers, or a class or numbers per pixel; randomly cropped and flipped
// for training.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "kintsugi/images/image_set.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

inline constexpr uint32_t kMixWhole = 1 << 16;

struct ImageOptions {
  SampleOrder order;
  // Pads each side with this many zeros, then takes a random crop of the image's size; 0: none.
  int64_t crop_padding = 0;
  bool flip = false;  // horizontally, with probability 1/2
  // Mixes each image, after its crop and flip, with another one drawn from the whole set (Zhang et al. 2018, section
  // 2): both parameters, above 0 to 1, of the Beta distribution of its weight; 0: none. Not for classes of pixels.
  double mixup = 0;
  uint64_t seed = 0;
};

// A random augmentation of an image: a function of only the seed and the sample's index in the run.
struct ImageChange {
  int64_t down = 0, right = 0;  // offset of the crop in pixels, -crop_padding to crop_padding
  bool flipped = false;
};
ImageChange change_of(const ImageOptions& options, uint64_t sample);

// The image that is mixed into a sample's own: a function of only the seed and the sample's index in the run.
struct ImageBlend {
  uint64_t other = 0;          // of `images`
  uint32_t share = kMixWhole;  // weight of the sample's own image, of kMixWhole
};
ImageBlend blend_of(const ImageOptions& options, uint64_t sample, uint64_t images);

// image = share * image + (1 - share) * other, elementwise; bytes are rounded to nearest.
void mix_into(uint32_t share, std::span<const std::byte> other, tensor::DType dtype, std::span<std::byte> image);

// In place. image: [channel height width]; for volumes, depth is folded into the channels
void apply(const ImageChange& change, int64_t channels, int64_t height, int64_t width, int64_t element_bytes,
           std::span<std::byte> image);

// The part "images" [channel [depth] height width], as in the files; depth 0: none.
Part images_part(int64_t channels, int64_t depth, int64_t height, int64_t width,
                 tensor::DType dtype = tensor::DType::u8);
// The part "pixel_classes" [[depth] height width]: the class of each pixel, or kIgnored.
Part pixel_classes_part(int64_t depth, int64_t height, int64_t width);

// The part "targets" [[depth] height width channels].
Part fields_part(int64_t channels, int64_t depth, int64_t height, int64_t width);

// With mixup the label of a sample is two classes: the parts "classes" and "weights", and of the other image
// "mixed_classes" and "mixed_weights", whose weights sum to 1.
Parts mixed_labels();

class ImageSamples : public FiniteSource {
 public:
  // Throws UserError if the padding is as large as the images.
  ImageSamples(std::shared_ptr<const images::ImageSet> set, ImageOptions options);

  uint64_t num_samples() const override { return static_cast<uint64_t>(set_->size()); }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  void read(const ImageOptions& options, uint64_t n, int64_t number, std::span<std::byte> image) const;
  void mix(uint64_t n, const BatchView& row) const;
  void fill_targets(uint64_t n, int64_t number, bool ended, std::span<float> targets) const;
  void fill_pixels(uint64_t n, int64_t number, bool ended, std::span<int32_t> pixels) const;
  void read_fields(const ImageOptions& options, uint64_t n, int64_t number, std::span<float> fields) const;

  std::shared_ptr<const images::ImageSet> set_;
  ImageOptions options_, other_options_;  // of an image, and of the one that is mixed into it
  Parts parts_;
  mutable std::mutex mutex_;  // of the image that is mixed into another, and its fields
  mutable std::vector<std::byte> other_;
  mutable std::vector<float> other_fields_;
};

}  // namespace kintsugi::samples
