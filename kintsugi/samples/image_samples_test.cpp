#include "kintsugi/samples/image_samples.h"

#include <gtest/gtest.h>

#include <cmath>
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

// Beta(a, a) has the mean 1/2 and the variance 1 / (4 (2 a + 1)); a = 1 is uniform. Other images are uniform.
TEST(ImageSamples, MixturesAreDrawnByNumber) {
  for (const double a : {0.05, 0.2, 1.0}) {
    const ImageOptions options = {.order = {}, .mixup = a, .seed = 4};
    double sum = 0, squares = 0;
    std::vector<int> other(10);
    constexpr int kDrawn = 20000;
    for (uint64_t n = 0; n < kDrawn; ++n) {
      const ImageBlend mixture = blend_of(options, n, 10);
      const double share = static_cast<double>(mixture.share) / kMixWhole;
      ASSERT_LE(share, 1.0);
      sum += share, squares += (share - 0.5) * (share - 0.5);
      ++other.at(mixture.other);
    }
    EXPECT_NEAR(sum / kDrawn, 0.5, 0.01) << a;
    EXPECT_NEAR(squares / kDrawn, 1 / (4 * (2 * a + 1)), 0.004) << a;
    for (const int n : other) EXPECT_NEAR(n, kDrawn / 10, 200) << a;
  }
  const ImageBlend one = blend_of({.order = {}, .mixup = 0.2, .seed = 4}, 17, 10),
                   again = blend_of({.order = {}, .mixup = 0.2, .seed = 4}, 17, 10);
  EXPECT_EQ(one.share, again.share);
  EXPECT_EQ(one.other, again.other);
}

TEST(ImageSamples, AreMixedByTheirShares) {
  std::vector<uint8_t> bytes = {0, 255, 100, 7};
  const std::vector<uint8_t> others = {255, 0, 101, 7};
  mix_into(kMixWhole / 4, std::as_bytes(std::span(others)), tensor::DType::u8,
           std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{191, 64, 101, 7}));
  mix_into(kMixWhole, std::as_bytes(std::span(others)), tensor::DType::u8, std::as_writable_bytes(std::span(bytes)));
  EXPECT_EQ(bytes, (std::vector<uint8_t>{191, 64, 101, 7}));
  std::vector<float> numbers = {4, -4};
  const std::vector<float> other_numbers = {0, 8};
  mix_into(kMixWhole / 4, std::as_bytes(std::span(other_numbers)), tensor::DType::f32,
           std::as_writable_bytes(std::span(numbers)));
  EXPECT_EQ(numbers, (std::vector<float>{1, 5}));
}

// A mixed sample is a function of its number, its two labels have the weights of its two images.
TEST(ImageSamples, MixturesHaveTwoLabels) {
  const TestFolder folder;
  const auto set = set_of(folder, 20);
  const ImageOptions options = {
      .order = {.shuffled = true, .seed = 3}, .crop_padding = 4, .flip = true, .mixup = 0.5, .seed = 3};
  const ImageSamples samples(set, options), plain(set, {.order = options.order});
  BatchMemory whole(40, samples.parts()), unmixed(40, plain.parts());
  samples.fill(0, whole.view());
  plain.fill(0, unmixed.view());
  const std::span<float> weights = whole.get<float>("weights"), others = whole.get<float>("mixed_weights");
  int mixed = 0;
  for (uint64_t n = 0; n < 40; ++n) {
    const ImageBlend mixture = blend_of(options, n, 20);
    EXPECT_EQ(weights[n], static_cast<float>(mixture.share) / kMixWhole);
    EXPECT_EQ(weights[n] + others[n], 1.0f);
    EXPECT_EQ(whole.get<int32_t>("classes")[n], unmixed.get<int32_t>("classes")[n]);
    EXPECT_EQ(whole.get<int32_t>("mixed_classes")[n], set->label(static_cast<int64_t>(mixture.other)));
    mixed += others[n] > 0.01f && weights[n] > 0.01f;
    BatchMemory one(1, samples.parts());
    samples.fill(n, one.view());
    const std::span<uint8_t> image = one.get<uint8_t>("images");
    EXPECT_TRUE(
        std::equal(image.begin(), image.end(), whole.get<uint8_t>("images").begin() + static_cast<int64_t>(n) * 3072));
  }
  EXPECT_GT(mixed, 20);
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

// The fields of an image are cropped, flipped and mixed with it: here they are the image. Pixels from outside have
// none.
TEST(ImageSamples, FieldsFollowTheirImages) {
  const TestFolder folder;
  std::vector<float> values(6 * 2 * 5 * 4);  // [image channel height width]
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i + 1);
  folder.write("x.npy",
               images::npy_file("<f4", "(6, 2, 5, 4)",
                                {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
  const auto set =
      std::make_shared<const images::ImageSet>(std::vector<std::filesystem::path>{folder / "x.npy"}, folder / "x.npy",
                                               images::Use::train, images::LabelKind::fields);
  for (const double mixup : {0.0, 0.4}) {
    const ImageSamples samples(
        set, {.order = {.shuffled = true, .seed = 3}, .crop_padding = 2, .flip = true, .mixup = mixup, .seed = 3});
    constexpr int64_t kRows = 13;
    BatchMemory batch(kRows, samples.parts());
    samples.fill(0, batch.view());
    const std::span<float> image = batch.get<float>("images"), fields = batch.get<float>("targets");
    size_t missing = 0;
    for (size_t n = 0; n < kRows; ++n)
      for (size_t c = 0; c < 2; ++c)
        for (size_t p = 0; p < 20; ++p) {
          const float field = fields[n * 40 + p * 2 + c];
          missing += std::isnan(field);
          if (!std::isnan(field)) {
            EXPECT_EQ(field, image[n * 40 + c * 20 + p]) << n << " " << c << " " << p;
          } else if (mixup == 0.0) {
            EXPECT_EQ(image[n * 40 + c * 20 + p], 0.0f) << n << " " << c << " " << p;
          }
        }
    EXPECT_GT(missing, 40u);
    EXPECT_LT(missing, fields.size() * 3 / 4);
  }
  const ImageSamples whole(set, {.order = {}});
  BatchMemory batch(7, whole.parts());
  whole.fill(0, batch.view());
  const std::span<float> fields = batch.get<float>("targets");
  EXPECT_EQ(fields[41], values[40 + 20]);
  EXPECT_TRUE(std::isnan(fields[6 * 40]));
}

}  // namespace kintsugi::samples::image_samples_test
