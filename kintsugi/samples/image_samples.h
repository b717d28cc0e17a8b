// Samples that are images, each with a class, numbers, or a class per pixel; randomly cropped and flipped for training.
#pragma once

#include <cstdint>
#include <memory>

#include "kintsugi/images/image_set.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

struct ImageOptions {
  SampleOrder order;
  // Pads each side with this many zeros, then takes a random crop of the image's size; 0: none.
  int64_t crop_padding = 0;
  bool flip = false;  // horizontally, with probability 1/2
  uint64_t seed = 0;
};

// A random augmentation of an image: a function of only the seed and the sample's index in the run.
struct ImageChange {
  int64_t down = 0, right = 0;  // offset of the crop in pixels, -crop_padding to crop_padding
  bool flipped = false;
};
ImageChange change_of(const ImageOptions& options, uint64_t sample);

// In place. image: [channel height width]; for volumes, depth is folded into the channels
void apply(const ImageChange& change, int64_t channels, int64_t height, int64_t width, int64_t element_bytes,
           std::span<std::byte> image);

// The part "images" [channel [depth] height width], as in the files; depth 0: none.
Part images_part(int64_t channels, int64_t depth, int64_t height, int64_t width,
                 tensor::DType dtype = tensor::DType::u8);
// The part "pixel_classes" [[depth] height width]: the class of each pixel, or kIgnored.
Part pixel_classes_part(int64_t depth, int64_t height, int64_t width);

class ImageSamples : public FiniteSource {
 public:
  // Throws UserError if the padding is as large as the images.
  ImageSamples(std::shared_ptr<const images::ImageSet> set, ImageOptions options);

  uint64_t num_samples() const override { return static_cast<uint64_t>(set_->size()); }
  const Parts& parts() const override { return parts_; }
  void fill(uint64_t first, const BatchView& batch) const override;

 private:
  void fill_pixels(uint64_t n, int64_t number, bool ended, std::span<int32_t> pixels) const;

  std::shared_ptr<const images::ImageSet> set_;
  ImageOptions options_;
  Parts parts_;
};

}  // namespace kintsugi::samples
