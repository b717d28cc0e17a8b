#include "kintsugi/tensor/split.h"

#include <algorithm>

namespace kintsugi::tensor {
namespace {

void append(std::vector<Segment>& to, Segment s) {
  if (s.count == 0) return;
  if (!to.empty()) {
    Segment& last = to.back();
    const bool follows = s.global < 0 ? last.global < 0 : last.global >= 0 && last.global + last.count == s.global;
    if (follows) {
      last.count += s.count;
      return;
    }
  }
  to.push_back(s);
}

// Appends positions [begin, end) of the segments; beyond their end there is padding.
void append_range(std::vector<Segment>& to, const std::vector<Segment>& segments, int64_t begin, int64_t end) {
  int64_t at = 0;
  for (const Segment& s : segments) {
    const int64_t from = std::max(begin, at), until = std::min(end, at + s.count);
    if (from < until) append(to, {s.global < 0 ? -1 : s.global + from - at, until - from});
    at += s.count;
  }
  if (end > at) append(to, {-1, end - std::max(begin, at)});
}

}  // namespace

int64_t length_after(int64_t length, const Cut& cut) {
  const int64_t chunks = cut.zigzag ? 2 * cut.parts : cut.parts;
  return (length + chunks - 1) / chunks * (cut.zigzag ? 2 : 1);
}

std::vector<Segment> cut_segments(const std::vector<Segment>& segments, const Cut& cut, int64_t c) {
  int64_t length = 0;
  for (const Segment& s : segments) length += s.count;
  const int64_t chunks = cut.zigzag ? 2 * cut.parts : cut.parts, chunk = (length + chunks - 1) / chunks;
  std::vector<Segment> mine;
  append_range(mine, segments, c * chunk, (c + 1) * chunk);
  if (cut.zigzag) append_range(mine, segments, (chunks - 1 - c) * chunk, (chunks - c) * chunk);
  return mine;
}

}  // namespace kintsugi::tensor
