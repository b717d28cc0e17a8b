#include "kintsugi/images/channel_statistics.h"

#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "kintsugi/data/test_folder.h"
#include "kintsugi/images/test_images.h"

namespace kintsugi::images::channel_statistics_test {
namespace {

using data::TestFolder;

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

}  // namespace

TEST(ChannelStatistics, OfBytes) {
  const TestFolder folder;
  folder.write("last.npy", npy_file("|u1", "(1, 5, 1, 2)", std::string{0, 1, 0, 1, 0, 1, 0, 1, 0, 3}));
  const ImageFile last(folder / "last.npy", "", LabelKind::none);
  const ChannelStatistics of_last = channel_statistics(last, 1000);
  EXPECT_EQ(of_last.mean[0], 0.0);
  EXPECT_NEAR(of_last.mean[1], 7.0 / 5 / 255, 1e-12);
  EXPECT_NEAR(of_last.deviation[1], 0.8 / 255, 1e-12);
  EXPECT_EQ(of_last.every, 1);
}

// Deviations of fields far from 0, as NumPy computes them; elements that are not finite are counted.
TEST(ChannelStatistics, OfNumbers) {
  const TestFolder folder;
  constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
  folder.write("x.npy", npy_file("<f4", "(3, 2, 1, 2)",
                                 floats({100000, 100002, 1, 2, 100004, 100006, 3, kNan, 100008, 100010, 6, 6})));
  const ImageFile file(folder / "x.npy", "", LabelKind::none);
  ChannelStatistics all = channel_statistics(file, 1000);
  EXPECT_NEAR(all.mean[0], 100005, 1e-9);
  EXPECT_NEAR(all.deviation[0], 3.415650255319866, 1e-9);
  EXPECT_NEAR(all.mean[1], 3.6, 1e-12);
  EXPECT_EQ(all.not_finite, 1);
  // Two images of 16 bytes fit: every second.
  all = channel_statistics(file, 40);
  EXPECT_EQ(all.every, 2);
  EXPECT_NEAR(all.mean[0], 100005, 1e-9);
  EXPECT_NEAR(all.mean[1], 15.0 / 4, 1e-12);
  EXPECT_EQ(all.not_finite, 0);
}

}  // namespace kintsugi::images::channel_statistics_test
