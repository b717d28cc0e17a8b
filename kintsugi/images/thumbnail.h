// Small pictures of images, for pages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "kintsugi/tensor/dtype.h"

namespace kintsugi::images {

struct Picture {
  int64_t channels = 0, depth = 0, height = 0, width = 0;  // depth 0: two-dimensional
  tensor::DType dtype = tensor::DType::u8;                 // or f32, whose smallest value is black and largest white
};

// The bytes of a Windows bitmap of 24 bits per pixel, which browsers show. image: [channel [depth] height width]. Three
// channels are red, green and blue, of others the first is gray; of a volume the middle slice. Images of more than
// `most` pixels a side are reduced by a whole factor, by averaging.
std::string bitmap(const Picture& picture, std::span<const std::byte> image, int64_t most);

}  // namespace kintsugi::images
