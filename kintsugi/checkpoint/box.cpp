#include "kintsugi/checkpoint/box.h"

#include <fmt/format.h>

#include <algorithm>

namespace kintsugi::checkpoint {
namespace {

// One side of the traversal: its position among the flat elements of a box.
struct Side {
  explicit Side(const Part& from) : part(from), stride(from.box.size.size(), 1) {
    for (size_t d = stride.size(); d-- > 1;) stride[d - 1] = stride[d] * part.box.size[d];
  }

  // Narrows [low, high) along dim d to the indices that contain elements of the range; `base` is the flat index of the
  // dims before d.
  void cut(size_t d, int64_t base, int64_t& low, int64_t& high) const {
    const int64_t start = part.box.start[d];
    if (part.flat.end <= base) {
      high = low;
      return;
    }
    if (part.flat.begin > base) low = std::max(low, start + (part.flat.begin - base) / stride[d]);
    high = std::min(high, start + (part.flat.end - base - 1) / stride[d] + 1);
  }

  int64_t at(size_t d, int64_t base, int64_t i) const { return base + (i - part.box.start[d]) * stride[d]; }

  const Part& part;
  std::vector<int64_t> stride;
};

class Walk {
 public:
  Walk(const Part& a, const Part& b, const std::function<void(int64_t, int64_t, int64_t)>& f)
      : a_(a), b_(b), f_(f), leaf_(a.box.size.size()) {
    for (size_t d = 0; d < leaf_; ++d) {
      low_.push_back(std::max(a.box.start[d], b.box.start[d]));
      high_.push_back(std::min(a.box.start[d] + a.box.size[d], b.box.start[d] + b.box.size[d]));
    }
    // A run extends over the innermost dims that are complete in both.
    while (leaf_ > 0) {
      const size_t d = --leaf_;
      run_ *= high_[d] - low_[d];
      if (high_[d] - low_[d] != a.box.size[d] || high_[d] - low_[d] != b.box.size[d]) break;
    }
  }

  void go(size_t d, int64_t a_base, int64_t b_base) const {
    if (d == leaf_) return leaf(a_base, b_base);
    int64_t low = low_[d], high = high_[d];
    a_.cut(d, a_base, low, high);
    b_.cut(d, b_base, low, high);
    for (int64_t i = low; i < high; ++i) go(d + 1, a_.at(d, a_base, i), b_.at(d, b_base, i));
  }

 private:
  void leaf(int64_t a_base, int64_t b_base) const {
    if (leaf_ < low_.size()) {
      a_base = a_.at(leaf_, a_base, low_[leaf_]);
      b_base = b_.at(leaf_, b_base, low_[leaf_]);
    }
    const Range& a_flat = a_.part.flat;
    const Range& b_flat = b_.part.flat;
    const int64_t first = std::max({int64_t{0}, a_flat.begin - a_base, b_flat.begin - b_base});
    const int64_t last = std::min({run_, a_flat.end - a_base, b_flat.end - b_base});
    if (first < last) f_(a_base + first - a_flat.begin, b_base + first - b_flat.begin, last - first);
  }

  Side a_, b_;
  const std::function<void(int64_t, int64_t, int64_t)>& f_;
  std::vector<int64_t> low_, high_;
  size_t leaf_;      // dims before it are iterated; it and later dims form one run
  int64_t run_ = 1;  // elements
};

}  // namespace

int64_t Box::elements() const {
  int64_t n = 1;
  for (const int64_t s : size) n *= s;
  return n;
}

Box whole_box(const tensor::Shape& shape) {
  Box box{std::vector<int64_t>(shape.rank(), 0), {}};
  for (const tensor::Dim& dim : shape) box.size.push_back(dim.size);
  return box;
}

Range whole_range(const Box& box) {
  return {0, box.elements()};
}

bool fits(const Box& box, const tensor::Shape& shape) {
  if (box.start.size() != shape.rank() || box.size.size() != shape.rank()) return false;
  for (size_t d = 0; d < shape.rank(); ++d)
    if (box.start[d] < 0 || box.size[d] < 0 || box.start[d] > shape[d].size ||
        box.size[d] > shape[d].size - box.start[d])
      return false;
  return true;
}

bool fits(const Range& range, const Box& box) {
  return 0 <= range.begin && range.begin <= range.end && range.end <= box.elements();
}

bool overlap(const Box& a, const Box& b) {
  for (size_t d = 0; d < a.size.size(); ++d)
    if (std::max(a.start[d], b.start[d]) >= std::min(a.start[d] + a.size[d], b.start[d] + b.size[d])) return false;
  return true;
}

std::string to_string(const Box& box) {
  std::string text = "[";
  for (size_t d = 0; d < box.size.size(); ++d)
    text += fmt::format("{}{}:{}", d ? " " : "", box.start[d], box.start[d] + box.size[d]);
  return text + "]";
}

void for_each_common_run(const Part& a, const Part& b, const std::function<void(int64_t, int64_t, int64_t)>& f) {
  if (!overlap(a.box, b.box) || a.flat.size() <= 0 || b.flat.size() <= 0) return;
  Walk(a, b, f).go(0, 0, 0);
}

}  // namespace kintsugi::checkpoint
