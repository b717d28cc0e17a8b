#include "kintsugi/images/thumbnail.h"

#include <gtest/gtest.h>

#include <vector>

namespace kintsugi::images::thumbnail_test {
namespace {

template <typename T>
std::string bitmap_of(const Picture& picture, const std::vector<T>& image, int64_t most = 64) {
  return bitmap(picture, std::as_bytes(std::span(image)), most);
}

// Blue, green and red of the rows, the last row first, and what fills them to 4 bytes.
std::vector<int> pixels_of(const std::string& file) {
  std::vector<int> pixels;
  for (size_t i = 54; i < file.size(); ++i) pixels.push_back(static_cast<uint8_t>(file[i]));
  return pixels;
}

}  // namespace

TEST(Thumbnail, OfColors) {
  const std::string file = bitmap_of<uint8_t>({.channels = 3, .height = 2, .width = 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(file.substr(0, 2), "BM");
  EXPECT_EQ(file.size(), 54u + 2 * 4);
  EXPECT_EQ(file[2], static_cast<char>(file.size()));
  EXPECT_EQ(file[10], 54);
  EXPECT_EQ(file[18], 1);  // width
  EXPECT_EQ(file[22], 2);  // height
  EXPECT_EQ(file[28], 24);
  EXPECT_EQ(pixels_of(file), (std::vector<int>{6, 4, 2, 0, 5, 3, 1, 0}));
}

TEST(Thumbnail, OfNumbersAndVolumes) {
  const std::string numbers =
      bitmap_of<float>({.channels = 1, .height = 1, .width = 3, .dtype = tensor::DType::f32}, {-1, 0, 3});
  EXPECT_EQ(pixels_of(numbers), (std::vector<int>{0, 0, 0, 64, 64, 64, 255, 255, 255, 0, 0, 0}));
  const std::string volume =
      bitmap_of<uint8_t>({.channels = 2, .depth = 3, .height = 1, .width = 1}, {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(pixels_of(volume), (std::vector<int>{2, 2, 2, 0}));
}

TEST(Thumbnail, LargeImagesAreReduced) {
  const std::string file =
      bitmap_of<uint8_t>({.channels = 1, .height = 2, .width = 5}, {0, 10, 20, 30, 40, 4, 14, 24, 34, 44}, 3);
  EXPECT_EQ(file[18], 3);
  EXPECT_EQ(file[22], 1);
  EXPECT_EQ(pixels_of(file), (std::vector<int>{7, 7, 7, 27, 27, 27, 42, 42, 42, 0, 0, 0}));
}

}  // namespace kintsugi::images::thumbnail_test
