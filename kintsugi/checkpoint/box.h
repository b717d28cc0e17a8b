// Boxes in tensors, and ranges of their flat elements: the geometry of checkpoints.
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

// For each dim of a tensor, `size` elements from `start` on.
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

// "[0:4 8:16]", from and to for each dim.
std::string to_string(const Box& box);

// A stored or requested part: a range of the elements of a box, in row-major order.
struct Part {
  Box box;
  Range flat;
};

// Calls f(in_a, in_b, count) for each run of elements that both parts hold and that is contiguous in both; in_a and
// in_b count elements from the first of a.flat and of b.flat. Time is proportional to the number of runs, not to the
// sizes of the boxes.
void for_each_common_run(const Part& a, const Part& b, const std::function<void(int64_t, int64_t, int64_t)>& f);

}  // namespace kintsugi::checkpoint
