// The position of a local block in the whole: the global index of each local position along one dim.
#pragma once

#include <cstdint>
#include <vector>

namespace kintsugi::tensor {

// `count` consecutive positions; `global` is the global index of the first, or -1 for padding.
struct Segment {
  int64_t global = 0;
  int64_t count = 0;

  bool operator==(const Segment&) const = default;
};

// A contiguous split has one segment, a zigzag split several, a padded split a last segment of -1.
class DimIndex {
 public:
  DimIndex() = default;
  explicit DimIndex(int64_t size) : segments_{{0, size}}, whole_(size) {}
  DimIndex(std::vector<Segment> segments, int64_t whole) : segments_(std::move(segments)), whole_(whole) {}

  const std::vector<Segment>& segments() const { return segments_; }
  int64_t whole() const { return whole_; }  // size of the dim in the whole tensor
  int64_t local() const {
    int64_t n = 0;
    for (const Segment& s : segments_) n += s.count;
    return n;
  }
  // Shifts a contiguous index so that it begins at `global`.
  void begin_at(int64_t global) { segments_[0].global = global; }
  // One segment without padding.
  bool contiguous() const { return segments_.size() == 1 && segments_[0].global >= 0; }

  int64_t operator[](int64_t position) const {
    for (const Segment& s : segments_) {
      if (position < s.count) return s.global < 0 ? -1 : s.global + position;
      position -= s.count;
    }
    return -1;
  }

 private:
  std::vector<Segment> segments_;
  int64_t whole_ = 0;
};

}  // namespace kintsugi::tensor
