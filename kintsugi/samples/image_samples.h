// Samples that are images, each with a class, with numbers, or with a class of each pixel; for training, cropped and
// flipped at random.
#pragma once

#include <cstdint>
#include <memory>

#include "kintsugi/images/image_set.h"
#include "kintsugi/samples/batch.h"
#include "kintsugi/samples/sample_order.h"

namespace kintsugi::samples {

struct ImageOptions {
  SampleOrder order;
  // Zeros on each side, of which a crop of the image's size is taken at random; 0: none.
  int64_t crop_padding = 0;
  bool flip = false;  // left to right, with probability 1/2
  uint64_t seed = 0;
};

// What is done to an image at random: a function of the seed and the sample's number in the run alone.
struct ImageChange {
  int64_t down = 0, right = 0;  // of the crop from the image, in pixels, -crop_padding to crop_padding
  bool flipped = false;
};
ImageChange change_of(const ImageOptions& options, uint64_t sample);

// In place. image: [channel height width]; of a volume, its depth counts with the channels
void apply(const ImageChange& change, int64_t channels, int64_t height, int64_t width, int64_t element_bytes,
           std::span<std::byte> image);

// The part "images" [channel [depth] height width], as the files have them; depth 0: none.
Part images_part(int64_t channels, int64_t depth, int64_t height, int64_t width,
                 tensor::DType dtype = tensor::DType::u8);
// The part "pixel_classes" [[depth] height width]: the class of each pixel, or kIgnored.
Part pixel_classes_part(int64_t depth, int64_t height, int64_t width);

class ImageSamples : public FiniteSource {
 public:
  // UserError if the padding is as large as the images.
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
