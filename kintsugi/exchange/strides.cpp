#include "kintsugi/exchange/strides.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <numeric>

#include "kintsugi/base/error.h"

namespace kintsugi::exchange {
namespace {

using checkpoint::Box;
using checkpoint::Range;

static_assert(std::endian::native == std::endian::little, "neighbours in a word are neighbours in memory");

constexpr int64_t kTile = 64;  // tile size in elements per side

// By decreasing stride.
std::vector<size_t> order_of(const std::vector<int64_t>& stride) {
  std::vector<size_t> order(stride.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return stride[a] > stride[b]; });
  return order;
}

class Cut {
 public:
  Cut(const Grid& grid, const Range& range, const std::function<void(const Box&)>& f)
      : grid_(grid), range_(range), f_(f), order_(order_of(grid.stride)), extent_(order_.size() + 1, 1) {
    for (size_t k = order_.size(); k-- > 0;)
      extent_[k] = extent_[k + 1] + (grid.size[order_[k]] - 1) * grid.stride[order_[k]];
    box_ = {std::vector<int64_t>(order_.size(), 0), grid.size};
  }

  // Dims before index k, by stride, are fixed; `at` is their offset.
  void go(size_t k, int64_t at) {
    if (range_.begin <= at && at + extent_[k] <= range_.end) return f_(box_);
    if (at >= range_.end || at + extent_[k] <= range_.begin || k == order_.size()) return;
    const size_t d = order_[k];
    const int64_t stride = grid_.stride[d], size = grid_.size[d];
    const auto index = [&](int64_t place) { return std::clamp<int64_t>(place < 0 ? 0 : place / stride, 0, size); };
    // Indices entirely within the range, and those cut on either side.
    const int64_t low = index(range_.begin - at + stride - 1);
    const int64_t high =
        std::max(low, range_.end - at < extent_[k + 1] ? 0 : index(range_.end - at - extent_[k + 1] + stride));
    const auto fixed = [&](int64_t from, int64_t to) {
      box_.start[d] = from;
      box_.size[d] = to - from;
    };
    if (low > 0) fixed(low - 1, low), go(k + 1, at + (low - 1) * stride);
    if (low < high) fixed(low, high), f_(box_);
    if (high < size) fixed(high, high + 1), go(k + 1, at + high * stride);
    fixed(0, size);
  }

 private:
  const Grid& grid_;
  const Range& range_;
  const std::function<void(const Box&)>& f_;
  std::vector<size_t> order_;
  std::vector<int64_t> extent_;  // [k]: the span of the dims from index k on
  Box box_;
};

// The dim with the smallest stride in one of the layouts.
template <typename Stride>
size_t innermost(const std::vector<CopyDim>& dims, Stride stride) {
  const auto nearest =
      std::min_element(dims.begin(), dims.end(), [&](const auto& a, const auto& b) { return stride(a) < stride(b); });
  return static_cast<size_t>(nearest - dims.begin());
}

template <typename T>
void copy_row(const CopyDim& d, const T* from, T* to) {
  if (d.from == 1 && d.to == 1) {
    std::memcpy(to, from, static_cast<size_t>(d.size) * sizeof(T));
    return;
  }
  for (int64_t i = 0; i < d.size; ++i) to[i * d.to] = from[i * d.from];
}

// Transposes a tile, 8 bytes at a time.
template <typename T>
void copy_column(const T (&tile)[kTile][kTile], int64_t x, int64_t rows, T* to) {
  constexpr int64_t kTogether = sizeof(uint64_t) / sizeof(T);
  int64_t y = 0;
  for (; y + kTogether <= rows; y += kTogether) {
    uint64_t word = 0;
    for (int64_t k = 0; k < kTogether; ++k)
      word |= static_cast<uint64_t>(tile[y + k][x]) << (8 * static_cast<int64_t>(sizeof(T)) * k);
    std::memcpy(to + y, &word, sizeof word);
  }
  for (; y < rows; ++y) to[y] = tile[y][x];
}

// `a` is the dim with the smallest stride in `from`, `b` that in `to`. Each tile passes through a small buffer, since
// rows at a power-of-two distance would share few cache lines.
template <typename T>
void copy_tiles(const CopyDim& a, const CopyDim& b, const T* from, T* to) {
  T tile[kTile][kTile];
  for (int64_t i = 0; i < a.size; i += kTile)
    for (int64_t j = 0; j < b.size; j += kTile) {
      const int64_t columns = std::min(kTile, a.size - i), rows = std::min(kTile, b.size - j);
      for (int64_t y = 0; y < rows; ++y)
        copy_row<T>({columns, a.from, 1}, from + i * a.from + (j + y) * b.from, tile[y]);
      T* const place = to + i * a.to + j * b.to;
      for (int64_t x = 0; x < columns; ++x)
        if (b.to == 1)
          copy_column(tile, x, rows, place + x * a.to);
        else
          copy_row<T>({rows, kTile, b.to}, &tile[0][x], place + x * a.to);
    }
}

template <typename T>
void copy_elements(std::vector<CopyDim> dims, const T* from, T* to) {
  if (dims.empty()) dims.push_back({});
  const size_t a = innermost(dims, [](const CopyDim& d) { return d.from; });
  const size_t b = innermost(dims, [](const CopyDim& d) { return d.to; });
  const CopyDim near_from = dims[a], near_to = dims[b];
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(std::max(a, b)));
  if (a != b) dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(std::min(a, b)));
  std::vector<int64_t> index(dims.size(), 0);
  for (;;) {
    if (a == b)
      copy_row(near_from, from, to);
    else
      copy_tiles(near_from, near_to, from, to);
    size_t d = dims.size();
    for (; d-- > 0;) {
      from += dims[d].from, to += dims[d].to;
      if (++index[d] < dims[d].size) break;
      from -= dims[d].from * dims[d].size, to -= dims[d].to * dims[d].size;
      index[d] = 0;
    }
    if (d > dims.size()) return;
  }
}

template <typename T>
void copy_of_type(const std::vector<CopyDim>& dims, const std::byte* from, std::byte* to) {
  copy_elements(dims, reinterpret_cast<const T*>(from), reinterpret_cast<T*>(to));
}

}  // namespace

int64_t Grid::at(const std::vector<int64_t>& index) const {
  return std::inner_product(index.begin(), index.end(), stride.begin(), first);
}

Grid grid_of(const Box& box) {
  Grid grid{0, box.size, std::vector<int64_t>(box.size.size(), 1)};
  for (size_t d = box.size.size(); d-- > 1;) grid.stride[d - 1] = grid.stride[d] * box.size[d];
  return grid;
}

void for_each_box(const Grid& grid, const Range& range, const std::function<void(const Box&)>& f) {
  if (range.size() > 0 && std::ranges::count(grid.size, 0) == 0) Cut(grid, range, f).go(0, grid.first);
}

std::vector<CopyDim> simplified(std::vector<CopyDim> dims) {
  std::erase_if(dims, [](const CopyDim& d) { return d.size == 1; });
  std::stable_sort(dims.begin(), dims.end(), [](const CopyDim& a, const CopyDim& b) { return a.from > b.from; });
  std::vector<CopyDim> joined;
  for (const CopyDim& d : dims) {
    if (!joined.empty() && joined.back().from == d.from * d.size && joined.back().to == d.to * d.size)
      joined.back() = {joined.back().size * d.size, d.from, d.to};
    else
      joined.push_back(d);
  }
  return joined;
}

void copy_strided(const std::vector<CopyDim>& dims, const std::byte* from, std::byte* to, int64_t element_size) {
  switch (element_size) {
    case 2:
      return copy_of_type<uint16_t>(dims, from, to);
    case 4:
      return copy_of_type<uint32_t>(dims, from, to);
    case 8:
      return copy_of_type<uint64_t>(dims, from, to);
    default:
      throw base::InternalError("exchange", "elements of {} bytes", element_size);
  }
}

}  // namespace kintsugi::exchange
