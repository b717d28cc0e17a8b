#include "kintsugi/images/channel_statistics.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <span>

namespace kintsugi::images {
namespace {

// Moments of the values minus the first of them: fields may be far from 0 compared to their deviation.
struct Moments {
  int64_t count = 0, not_finite = 0;
  double first = 0, sum = 0, squares = 0;

  void add(double x, double times = 1) {
    if (!std::isfinite(x)) {
      ++not_finite;
      return;
    }
    if (count == 0) first = x;
    const double y = x - first;
    count += static_cast<int64_t>(times);
    sum += times * y;
    squares += times * y * y;
  }
  double mean() const { return count == 0 ? 0.0 : first + sum / static_cast<double>(count); }
  double deviation() const {
    if (count == 0) return 0.0;
    const auto n = static_cast<double>(count);
    return std::sqrt(std::max(0.0, squares / n - sum / n * (sum / n)));
  }
};

void add_bytes(std::span<const std::byte> plane, Moments& to) {
  std::array<int64_t, 256> counts{};
  for (const std::byte b : plane) ++counts[std::to_integer<size_t>(b)];
  for (size_t b = 0; b < counts.size(); ++b)
    if (counts[b] > 0) to.add(static_cast<double>(b) / 255.0, static_cast<double>(counts[b]));
}

void add_numbers(std::span<const std::byte> plane, Moments& to) {
  for (size_t at = 0; at < plane.size(); at += sizeof(float)) {
    float x = 0;
    std::memcpy(&x, plane.data() + at, sizeof x);
    to.add(x);
  }
}

}  // namespace

ChannelStatistics channel_statistics(const ImageFile& file, int64_t most_bytes) {
  const int64_t bytes = file.bytes_per_image();
  const int64_t images = std::max<int64_t>(1, most_bytes / bytes);
  ChannelStatistics result;
  result.every = (file.size() + images - 1) / images;
  std::vector<Moments> channels(static_cast<size_t>(file.channels()));
  std::vector<std::byte> image(static_cast<size_t>(bytes));
  const size_t plane = image.size() / channels.size();
  for (int64_t i = 0; i < file.size(); i += result.every) {
    file.read(i, image);
    for (size_t c = 0; c < channels.size(); ++c) {
      const std::span<const std::byte> values = std::span(image).subspan(c * plane, plane);
      file.dtype() == tensor::DType::u8 ? add_bytes(values, channels[c]) : add_numbers(values, channels[c]);
    }
  }
  for (const Moments& m : channels) {
    result.mean.push_back(m.mean());
    result.deviation.push_back(m.deviation());
    result.not_finite += m.not_finite;
  }
  return result;
}

}  // namespace kintsugi::images
