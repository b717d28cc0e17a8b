#include "kintsugi/tensor/window.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"

namespace kintsugi::tensor::window_test {

TEST(Window, CountsOutputs) {
  EXPECT_EQ((Window{.kernel = 5}.outputs(32)), 28);
  EXPECT_EQ((Window{.kernel = 2, .stride = 2}.outputs(7)), 3);
  EXPECT_EQ((Window{.kernel = 3, .stride = 2, .low = 1, .high = 1}.outputs(8)), 4);
  EXPECT_EQ((Window{.kernel = 3, .dilation = 2, .low = 2, .high = 2}.outputs(8)), 8);
  EXPECT_EQ((Window{.kernel = 4, .low = 1}.outputs(2)), 0);
  EXPECT_EQ((Window{.kernel = 3, .stride = 2, .dilation = 2}.extent()), 5);
  EXPECT_EQ((Window{.kernel = 3, .stride = 2, .dilation = 2}.reach(4)), 11);
}

TEST(Window, IsReadFromAttributes) {
  const Attributes attributes = {{"window", std::string("height width")},
                                 {"kernel_height", int64_t{3}},
                                 {"kernel_width", int64_t{5}},
                                 {"stride_width", int64_t{2}},
                                 {"low_height", int64_t{1}}};
  const std::vector<DimWindow> windows = windows_of(attributes);
  ASSERT_EQ(windows.size(), 2u);
  EXPECT_EQ(windows[0], (DimWindow{"height", {.kernel = 3, .low = 1}}));
  EXPECT_EQ(windows[1], (DimWindow{"width", {.kernel = 5, .stride = 2}}));
  Attributes written;
  set_windows(written, windows);
  EXPECT_EQ(windows_of(written), windows);
  EXPECT_EQ(to_string(written), "window=\"height width\" kernel_height=3 low_height=1 kernel_width=5 stride_width=2");
  EXPECT_TRUE(windows_of({}).empty());
  EXPECT_TRUE(windows_of({{"window", int64_t{5}}}).empty());  // of attention: positions that a query sees
  EXPECT_THROW(windows_of({{"window", std::string("height")}, {"kernel_height", int64_t{0}}}), base::InternalError);
}

TEST(Window, PartsOfAnOutput) {
  using Ranges = std::array<std::array<int64_t, 2>, 2>;
  const OutputPart inner = {.dim = "height", .begin = 2, .end = 7},
                   outer = {.dim = "height", .begin = 2, .end = 7, .outer = true};
  EXPECT_EQ(inner.ranges(8), (Ranges{{{2, 7}, {7, 7}}}));
  EXPECT_EQ(outer.ranges(8), (Ranges{{{0, 2}, {7, 8}}}));
  EXPECT_EQ(inner.positions(8), 5);
  EXPECT_EQ(outer.positions(8), 3);
  Attributes attributes = {{"groups", int64_t{1}}};
  EXPECT_FALSE(output_part(attributes));
  for (const OutputPart& part : {inner, outer}) {
    set_output_part(attributes, part);
    EXPECT_EQ(output_part(attributes), part);
  }
  EXPECT_EQ(to_string(attributes), "groups=1 part=outer part_dim=height part_begin=2 part_end=7");
  set_output_part(attributes, {.dim = "height", .begin = 3, .end = 2});
  EXPECT_THROW(output_part(attributes), base::InternalError);
}

}  // namespace kintsugi::tensor::window_test
