#include "kintsugi/samples/batch.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

namespace kintsugi::samples::batch_test {
namespace {

using tensor::DType;

const Parts kParts = {{.name = "image", .dtype = DType::u8, .shape = {2, 3}}, labels_part(2), targets_part(1)};

template <typename F>
std::string error_of(const F& f) {
  try {
    f();
  } catch (const base::InternalError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST(Batch, HasTypedPartsByName) {
  BatchMemory batch(3, kParts);
  const std::span<uint8_t> image = batch.get<uint8_t>("image");
  ASSERT_EQ(image.size(), 18u);
  std::iota(image.begin(), image.end(), 0);
  EXPECT_EQ(batch.get<int32_t>("labels").size(), 6u);
  EXPECT_TRUE(batch.get<float>("features").empty());
  EXPECT_EQ(error_of([&] { batch.get<float>("labels"); }),
            "[samples] internal error: int32 \"labels\" are read as another type");
  std::vector<int> firsts;
  for_each_row(batch.view(), kParts, [&](uint64_t row, const BatchView& view) {
    EXPECT_EQ(view.rows(), 1);
    EXPECT_EQ(view.get<uint8_t>("image").size(), 6u);
    EXPECT_EQ(view.get<uint8_t>("image")[0], 6 * row);
    firsts.push_back(view.get<uint8_t>("image")[0]);
  });
  EXPECT_EQ(firsts, (std::vector<int>{0, 6, 12}));
  EXPECT_EQ(to_string(kParts[0]), "image uint8 [2 3]");
  EXPECT_EQ(to_string(classes_part()), "classes int32 []");
}

TEST(Batch, IsCopied) {
  BatchMemory batch(2, kParts), copy(2, kParts);
  std::ranges::fill(batch.get<uint8_t>("image"), uint8_t{7});
  set_label(batch.view().row(0), std::vector<float>{2.5f}, false);
  set_label(batch.view().row(1), std::vector<float>{2.5f}, true);
  copy.copy(batch.view());
  const BatchMemory moved = std::move(copy);
  EXPECT_EQ(moved.get<uint8_t>("image")[11], 7);
  EXPECT_EQ(moved.get<float>("targets")[0], 2.5f);
  EXPECT_TRUE(std::isnan(moved.get<float>("targets")[1]));
  BatchMemory other(3, kParts);
  EXPECT_EQ(error_of([&] { other.copy(batch.view()); }),
            "[samples] internal error: 2 rows of 3 parts are copied to 3 of 3");
}

TEST(Batch, HoldsNothingThatItsSourceDoesNotFill) {
  BatchMemory batch(1, kParts);
  EXPECT_EQ(error_of([&] { require_parts(batch.view(), kParts); }), "no error");
  EXPECT_EQ(error_of([&] {
              require_parts(batch.view(), {kParts[1], kParts[2]});
            }),
            "[samples] internal error: nothing fills the part \"image\" of a batch");
  Parts longer = kParts;
  longer[1] = labels_part(4);
  EXPECT_EQ(error_of([&] { require_parts(batch.view(), longer); }),
            "[samples] internal error: the part \"labels\" of a batch has 2 elements of int32 in a sample, and its "
            "source 4 of int32");
}

}  // namespace kintsugi::samples::batch_test
