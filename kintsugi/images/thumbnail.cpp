#include "kintsugi/images/thumbnail.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "kintsugi/base/error.h"

namespace kintsugi::images {
namespace {

void put_little_endian(std::string& to, int64_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) to += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
}

// [channel height width] of the picture's slice, from 0 to 1.
std::vector<double> values_of(const Picture& p, std::span<const std::byte> image) {
  const int64_t plane = p.height * p.width, slices = std::max<int64_t>(p.depth, 1);
  std::vector<double> values(static_cast<size_t>(p.channels * plane));
  for (int64_t c = 0; c < p.channels; ++c)
    for (int64_t i = 0; i < plane; ++i) {
      const auto from = static_cast<size_t>((c * slices + slices / 2) * plane + i),
                 to = static_cast<size_t>(c * plane + i);
      values[to] = p.dtype == tensor::DType::u8
                       ? std::to_integer<int>(image[from]) / 255.0
                       : static_cast<double>(reinterpret_cast<const float*>(image.data())[from]);
    }
  if (p.dtype == tensor::DType::u8) return values;
  double least = 0, most = 0;
  bool first = true;
  for (double& v : values) {
    if (!std::isfinite(v)) v = 0;
    least = first ? v : std::min(least, v), most = first ? v : std::max(most, v);
    first = false;
  }
  for (double& v : values) v = most > least ? (v - least) / (most - least) : 0.5;
  return values;
}

}  // namespace

std::string bitmap(const Picture& p, std::span<const std::byte> image, int64_t most) {
  const int64_t elements = p.channels * std::max<int64_t>(p.depth, 1) * p.height * p.width;
  base::require(elements > 0 && most > 0 && std::ssize(image) == elements * tensor::size_of(p.dtype), "images",
                "a picture of {} bytes", image.size());
  const std::vector<double> values = values_of(p, image);
  const int64_t factor = (std::max(p.height, p.width) + most - 1) / most, height = (p.height + factor - 1) / factor,
                width = (p.width + factor - 1) / factor, row = (3 * width + 3) / 4 * 4;
  constexpr int64_t kHeader = 14 + 40;
  std::string file = "BM";
  put_little_endian(file, kHeader + row * height, 4);
  put_little_endian(file, 0, 4);
  put_little_endian(file, kHeader, 4);
  put_little_endian(file, 40, 4);  // of the header from here on
  put_little_endian(file, width, 4);
  put_little_endian(file, height, 4);
  put_little_endian(file, 1, 2);
  put_little_endian(file, 24, 2);
  for (int i = 0; i < 6; ++i) put_little_endian(file, 0, 4);
  const auto mean = [&](int64_t channel, int64_t y, int64_t x) {
    double sum = 0;
    int64_t count = 0;
    for (int64_t i = y * factor; i < std::min(p.height, (y + 1) * factor); ++i)
      for (int64_t j = x * factor; j < std::min(p.width, (x + 1) * factor); ++j, ++count)
        sum += values[static_cast<size_t>((channel * p.height + i) * p.width + j)];
    return static_cast<char>(std::lround(255 * sum / static_cast<double>(count)));
  };
  for (int64_t y = height; y-- > 0;) {  // the last row first
    for (int64_t x = 0; x < width; ++x)
      for (const int64_t channel : {2, 1, 0}) file += mean(p.channels == 3 ? channel : 0, y, x);
    file.append(static_cast<size_t>(row - 3 * width), '\0');
  }
  return file;
}

}  // namespace kintsugi::images
