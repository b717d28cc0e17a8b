#include "kintsugi/exchange/strides.h"

#include <gtest/gtest.h>

#include <numeric>

#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/exchange/read_strided.h"

namespace kintsugi::exchange::strides_test {
namespace {

using checkpoint::Box;

// Calls f with the indices of all elements of a box.
template <typename F>
void for_each_index(const Box& box, F&& f) {
  std::vector<int64_t> index(box.size.size());
  for (int64_t i = 0; i < box.elements(); ++i) {
    int64_t rest = i;
    for (size_t d = index.size(); d-- > 0; rest /= box.size[d]) index[d] = box.start[d] + rest % box.size[d];
    f(index);
  }
}

// Every range of a grid, compared with a check of each element.
void expect_cut(const Grid& grid) {
  const Box whole = {std::vector<int64_t>(grid.size.size(), 0), grid.size};
  int64_t end = grid.first;
  for (size_t d = 0; d < grid.size.size(); ++d) end += (grid.size[d] - 1) * grid.stride[d];
  for (int64_t from = 0; from <= end + 1; ++from)
    for (int64_t to = from; to <= end + 2; ++to) {
      std::vector<int> times(static_cast<size_t>(end) + 1, 0);
      for_each_box(grid, {from, to}, [&](const Box& box) {
        for_each_index(box, [&](const auto& index) { ++times[static_cast<size_t>(grid.at(index))]; });
      });
      for_each_index(whole, [&](const auto& index) {
        const int64_t at = grid.at(index);
        if (from <= at && at < to) --times[static_cast<size_t>(at)];
      });
      ASSERT_EQ(std::ranges::count(times, 0), end + 1) << from << " to " << to;
    }
}

template <typename T>
void expect_copy(const std::vector<CopyDim>& dims) {
  int64_t from_end = 1, to_end = 1;
  Box box;
  for (const CopyDim& d : dims) {
    from_end += (d.size - 1) * d.from;
    to_end += (d.size - 1) * d.to;
    box.start.push_back(0);
    box.size.push_back(d.size);
  }
  std::vector<T> from(static_cast<size_t>(from_end)), to(static_cast<size_t>(to_end)), want(to.size());
  std::iota(from.begin(), from.end(), T{1});
  for_each_index(box, [&](const auto& index) {
    int64_t a = 0, b = 0;
    for (size_t d = 0; d < dims.size(); ++d) a += index[d] * dims[d].from, b += index[d] * dims[d].to;
    want[static_cast<size_t>(b)] = from[static_cast<size_t>(a)];
  });
  for (const auto& form : {dims, simplified(dims)}) {
    std::ranges::fill(to, T{});
    copy_strided(form, std::as_bytes(std::span(from)).data(), std::as_writable_bytes(std::span(to)).data(), sizeof(T));
    EXPECT_EQ(to, want);
  }
}

}  // namespace

TEST(Strides, RangesAreCutIntoBoxes) {
  expect_cut({0, {}, {}});
  expect_cut({3, {5}, {1}});
  expect_cut({2, {3, 2, 4}, {8, 4, 1}});   // row-major
  expect_cut({1, {4, 3, 2}, {1, 9, 30}});  // other order, with gaps
  expect_cut({0, {2, 1, 3}, {7, 7, 2}});
}

TEST(Strides, CopiesOfAnyOrder) {
  expect_copy<uint16_t>({});
  expect_copy<uint32_t>({{70, 1, 1}});
  expect_copy<uint16_t>({{70, 45, 1}, {45, 1, 70}});              // rows become columns
  expect_copy<uint64_t>({{3, 100, 1}, {4, 25, 3}, {25, 1, 12}});  // the same of three dims
  expect_copy<uint32_t>({{3, 1, 40}, {4, 5, 10}, {2, 20, 3}});    // gaps in both
  expect_copy<uint16_t>({{6, 50, 60}, {1, 9, 9}, {10, 5, 3}, {2, 2, 1}});
}

TEST(Strides, NeighboursThatAreOneDimAreJoined) {
  const auto dims = simplified({{5, 1, 1}, {1, 77, 3}, {3, 5, 5}, {2, 20, 40}});
  ASSERT_EQ(dims.size(), 2u);
  EXPECT_EQ(dims[0].size, 2);
  EXPECT_EQ(dims[1].size, 15);
}

// More than fits in memory at once; each way of reading: in place, staged, converted, short and long runs.
TEST(Strides, FilesAreReadInAnyOrder) {
  checkpoint::ScratchFolder scratch;
  const int64_t rows = 2300, columns = 2100;
  std::vector<float> x(static_cast<size_t>(rows * columns));
  std::iota(x.begin(), x.end(), 0.0f);
  {
    checkpoint::SafetensorsWriter writer(scratch / "x", {{"x", tensor::DType::f32, {rows, columns}}});
    writer.write(std::as_bytes(std::span(x)));
    writer.close();
  }
  const checkpoint::SafetensorsFile file(scratch / "x");
  const checkpoint::TensorInFile stored = file.at("x");
  std::vector<float> y(x.size());
  Staging staging;
  std::byte* const out = std::as_writable_bytes(std::span(y)).data();
  read_strided({stored, 0, {{columns, 1, rows}, {rows, columns, 1}}}, tensor::DType::f32, out, staging);
  int64_t wrong = 0;
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < columns; ++c)
      wrong += y[static_cast<size_t>(c * rows + r)] != x[static_cast<size_t>(r * columns + c)];
  EXPECT_EQ(wrong, 0);
  read_strided({stored, 0, {{rows * columns, 1, 1}}}, tensor::DType::f32, out, staging);
  EXPECT_EQ(y, x);
  read_strided({stored, 5, {{rows, columns, 3}, {3, 1, 1}}}, tensor::DType::f32, out, staging);  // far runs
  EXPECT_EQ(y[3], x[static_cast<size_t>(columns + 5)]);
  EXPECT_EQ(y[static_cast<size_t>(rows * 3 - 1)], x[static_cast<size_t>((rows - 1) * columns + 7)]);
  read_strided({stored, 2, {{1000, 10, 1}, {4, 1, 1000}}}, tensor::DType::f32, out, staging);  // near runs
  EXPECT_EQ(y[999], x[9992]);
  EXPECT_EQ(y[3001], x[15]);
  std::vector<double> z(6);
  read_strided({stored, 7, {{3, columns, 1}, {2, 1, 3}}}, tensor::DType::f64,
               std::as_writable_bytes(std::span(z)).data(), staging);
  EXPECT_EQ(z, (std::vector<double>{7, 2107, 4207, 8, 2108, 4208}));
}

}  // namespace kintsugi::exchange::strides_test
