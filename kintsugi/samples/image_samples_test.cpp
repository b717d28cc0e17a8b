#include "kintsugi/samples/image_samples.h"

#include <gtest/gtest.h>

#include <set>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/images/test_images.h"

namespace kintsugi::samples::image_samples_test {
namespace {

using data::TestFolder;

std::shared_ptr<const images::ImageSet> set_of(const TestFolder& folder, int64_t count) {
  std::vector<int> labels;
  for (int64_t i = 0; i < count; ++i) labels.push_back(static_cast<int>(i % 10));
  folder.write("c.bin", images::cifar_file(labels));
  return std::make_shared<const images::ImageSet>(std::vector<std::filesystem::path>{folder / "c.bin"}, "",
                                                  images::Use::train);
}

std::vector<uint8_t> changed(const ImageChange& change, std::vector<uint8_t> image, int64_t height, int64_t width) {
  apply(change, 1, height, width, 1, std::as_writable_bytes(std::span(image)));
  return image;
}

}  // namespace

TEST(ImageSamples, AreCroppedAndFlipped) {
  const std::vector<uint8_t> image = {1, 2, 3, 4, 5, 6};
  using Bytes = std::vector<uint8_t>;
  EXPECT_EQ(changed({}, image, 2, 3), image);
  EXPECT_EQ(changed({.down = 1}, image, 2, 3), (Bytes{4, 5, 6, 0, 0, 0}));
  EXPECT_EQ(changed({.down = -1}, image, 2, 3), (Bytes{0, 0, 0, 1, 2, 3}));
  EXPECT_EQ(changed({.right = 1}, image, 2, 3), (Bytes{2, 3, 0, 5, 6, 0}));
  EXPECT_EQ(changed({.right = -2}, image, 2, 3), (Bytes{0, 0, 1, 0, 0, 4}));
  EXPECT_EQ(changed({.flipped = true}, image, 2, 3), (Bytes{3, 2, 1, 6, 5, 4}));
  EXPECT_EQ(changed({.down = 1, .right = 1, .flipped = true}, image, 2, 3), (Bytes{0, 6, 5, 0, 0, 0}));
  std::vector<float> numbers = {1, 2, 3, 4};  // two channels of one row
  apply({.right = 1}, 2, 1, 2, 4, std::as_writable_bytes(std::span(numbers)));
  EXPECT_EQ(numbers, (std::vector<float>{2, 0, 4, 0}));
}

// All crops and both directions are equally likely, as a function of the seed and the sample's index.
TEST(ImageSamples, ChangesAreDrawnByNumber) {
  const ImageOptions options = {.order = {}, .crop_padding = 2, .flip = true, .seed = 4};
  std::vector<int> down(5), right(5);
  int flipped = 0;
  for (uint64_t n = 0; n < 5000; ++n) {
    const ImageChange change = change_of(options, n);
    ++down.at(static_cast<size_t>(change.down + 2));
    ++right.at(static_cast<size_t>(change.right + 2));
    flipped += change.flipped;
  }
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_NEAR(down[i], 1000, 150);
    EXPECT_NEAR(right[i], 1000, 150);
  }
  EXPECT_NEAR(flipped, 2500, 180);
  const ImageChange change = change_of(options, 17), again = change_of(options, 17);
  EXPECT_EQ(change.down, again.down);
  EXPECT_EQ(change_of({.order = {}, .crop_padding = 0, .flip = false, .seed = 4}, 17).down, 0);
}

// A batch equals its samples read individually, regardless of rank and resume point; an epoch has each image once.
TEST(ImageSamples, AreAFunctionOfTheirNumber) {
  const TestFolder folder;
  const ImageOptions options = {.order = {.shuffled = true, .seed = 3}, .crop_padding = 4, .flip = true, .seed = 3};
  const ImageSamples samples(set_of(folder, 20), options);
  BatchMemory whole(40, samples.parts());
  samples.fill(0, whole.view());
  const std::span<uint8_t> all = whole.get<uint8_t>("images");
  const std::span<int32_t> classes = whole.get<int32_t>("classes");
  std::vector<int> seen(10);
  for (size_t i = 0; i < 20; ++i) ++seen.at(static_cast<size_t>(classes[i]));
  EXPECT_EQ(seen, std::vector<int>(10, 2));
  EXPECT_NE(std::vector<int32_t>(classes.begin(), classes.begin() + 20),
            std::vector<int32_t>(classes.begin() + 20, classes.end()));
  for (uint64_t n : {uint64_t{7}, uint64_t{31}}) {
    BatchMemory one(1, samples.parts());
    std::ranges::fill(one.get<uint8_t>("images"), uint8_t{99});
    samples.fill(n, one.view());
    const std::span<uint8_t> image = one.get<uint8_t>("images");
    EXPECT_TRUE(std::equal(image.begin(), image.end(), all.begin() + static_cast<int64_t>(n) * 3072));
    EXPECT_EQ(one.get<int32_t>("classes")[0], classes[n]);
  }
  EXPECT_EQ(whole.get<float>("weights")[5], 1.0f);
}

TEST(ImageSamples, OfAnEvaluationEnd) {
  const TestFolder folder;
  const ImageSamples samples(set_of(folder, 2), {.order = {}});
  BatchMemory batch(3, samples.parts());
  samples.fill(0, batch.view());
  EXPECT_EQ(batch.get<uint8_t>("images")[3072 + 9], images::test_pixel(1, 9));
  EXPECT_EQ(batch.get<int32_t>("classes")[1], 1);
  EXPECT_EQ(batch.get<int32_t>("classes")[2], kIgnored);
  EXPECT_EQ(data::error_of([&] { const ImageSamples bad(set_of(folder, 2), {.order = {}, .crop_padding = 32}); }),
            "[images] data.crop_padding 32 is too large for images of 32 x 32; it must be smaller");
}

}  // namespace kintsugi::samples::image_samples_test
