// Mean and deviation of each channel of images, in the units of model.image_mean and image_deviation.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/images/image_file.h"

namespace kintsugi::images {

struct ChannelStatistics {
  std::vector<double> mean, deviation;  // of all elements; bytes are divided by 255
  int64_t every = 1;                    // of every n-th image
  int64_t not_finite = 0;               // elements that are left out
};

// One pass over the file, with sums in fp64; if the images have more bytes than `most_bytes`, over every n-th. A
// channel without finite elements has mean 0 and deviation 0.
ChannelStatistics channel_statistics(const ImageFile& file, int64_t most_bytes);

}  // namespace kintsugi::images
