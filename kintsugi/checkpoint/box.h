// Geometry of checkpoints: boxes in tensors, and ranges of their flat elements.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "kintsugi/tensor/shape.h"

namespace kintsugi::checkpoint {

// Elements [begin, end).
struct Range {
  int64_t begin = 0;
  int64_t end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

// `size` elements from `start` in each dim of a tensor.
struct Box {
  std::vector<int64_t> start;
  std::vector<int64_t> size;

  int64_t elements() const;  // 1 for a scalar
  bool operator==(const Box&) const = default;
  auto operator<=>(const Box&) const = default;
};

Box whole_box(const tensor::Shape& shape);
Range whole_range(const Box& box);
bool fits(const Box& box, const tensor::Shape& shape);
bool fits(const Range& range, const Box& box);
bool overlap(const Box& a, const Box& b);

// "[0:4 8:16]": begin and end of each dim.
std::string to_string(const Box& box);

// A stored or requested part: a range of the elements of a box, in row-major order.
struct Part {
  Box box;
  Range flat;
};

// Calls f(in_a, in_b, count) for each run of elements that is in both parts and contiguous in both; in_a and in_b are
// element offsets from the beginning of a.flat and b.flat. Takes time proportional to the number of runs, not to the
// sizes of the boxes.
void for_each_common_run(const Part& a, const Part& b, const std::function<void(int64_t, int64_t, int64_t)>& f);

}  // namespace kintsugi::checkpoint
