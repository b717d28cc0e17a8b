#include "kintsugi/program/byte_range.h"

#include "kintsugi/base/error.h"

namespace kintsugi::program {
namespace {

Space space_of(const Buffer& root) {
  if (root.offset < 0) return Space::root;
  switch (root.region) {
    case Region::state:
      return Space::state;
    case Region::arena:
      return root.segment < 0 ? Space::arena : Space::segment;
    case Region::file:
      return Space::file;
  }
  throw base::InternalError("program", "no region {}", static_cast<int>(root.region));
}

ByteRange byte_range(const Program& p, BufferId id) {
  const BufferId root_id = p.root(id);
  const Buffer& root = p.buffer(root_id);
  const bool part = p.is_part(id);
  ByteRange range = {.space = space_of(root), .begin = part ? 0 : p.begin(id, 0)};
  range.end = part ? root.bytes() : range.begin + p.buffer(id).bytes();
  if (range.space == Space::root) {
    range.number = root_id;
    return range;
  }
  if (range.space == Space::segment) range.number = root.segment;
  range.begin += root.offset;
  range.end += root.offset;
  return range;
}

}  // namespace

std::vector<ByteRange> byte_ranges(const Program& p) {
  std::vector<ByteRange> ranges;
  for (size_t b = 0; b < p.buffers.size(); ++b) ranges.push_back(byte_range(p, static_cast<BufferId>(b)));
  return ranges;
}

ByteRange in_slot(ByteRange range, const CallList& list, int slot) {
  if (range.space != Space::segment || static_cast<size_t>(slot) >= list.slots.size()) return range;
  const std::vector<int64_t>& begins = list.slots[static_cast<size_t>(slot)];
  const auto segment = static_cast<size_t>(range.number);
  if (segment >= begins.size() || begins[segment] < 0) return range;
  return {Space::arena, 0, range.begin + begins[segment], range.end + begins[segment]};
}

}  // namespace kintsugi::program
