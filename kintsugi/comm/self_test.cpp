#include <gtest/gtest.h>

#include <array>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

TEST(Self, CollectivesOfOneRankKeepTheData) {
  const auto one = self_communicator();
  std::array<float, 3> x = {1, 2, 3}, y = {};
  const auto in = std::as_bytes(std::span(x));
  const auto out = std::as_writable_bytes(std::span(y));
  one->all_reduce(std::as_writable_bytes(std::span(x)), tensor::DType::f32, Reduction::sum)->wait();
  one->all_gather(in, out)->wait();
  EXPECT_EQ(x, y);
  y = {};
  one->reduce_scatter(in, out, tensor::DType::f32, Reduction::sum)->wait();
  EXPECT_EQ(x, y);
  y = {};
  one->all_to_all(in, out)->wait();
  EXPECT_EQ(x, y);
  EXPECT_THROW(one->all_gather(in, out.first(4)), base::InternalError);
  EXPECT_THROW(one->send(in, 1), base::InternalError);
}

}  // namespace kintsugi::comm
