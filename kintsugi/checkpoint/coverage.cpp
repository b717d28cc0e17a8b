// Merges the pieces of several ranks into whole tensors.
#include <algorithm>
#include <iterator>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/checkpoint/index.h"
#include "kintsugi/checkpoint/where.h"

namespace kintsugi::checkpoint {
namespace {

// Empty if the pieces cover each element exactly once, else a description of the fault.
std::string fault(const StoredTensor& tensor) {
  std::map<Box, std::vector<Range>> boxes;
  for (const StoredPiece& piece : tensor.pieces) boxes[piece.part.box].push_back(piece.part.flat);
  int64_t elements = 0;
  for (auto& [box, ranges] : boxes) {
    std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
    int64_t end = 0;
    for (const Range& range : ranges) {
      if (range.begin != end)
        return fmt::format("of box {}, elements {} to {} are stored {}", to_string(box), std::min(end, range.begin),
                           std::max(end, range.begin), range.begin > end ? "nowhere" : "twice");
      end = range.end;
    }
    if (end != box.elements())
      return fmt::format("of box {}, elements {} to {} are stored nowhere", to_string(box), end, box.elements());
    elements += end;
  }
  // Boxes are sorted by their first start, so only those that begin before this one ends can overlap it.
  for (auto a = boxes.begin(); a != boxes.end(); ++a)
    for (auto b = std::next(a); b != boxes.end(); ++b) {
      if (!a->first.start.empty() && b->first.start[0] >= a->first.start[0] + a->first.size[0]) break;
      if (overlap(a->first, b->first))
        return fmt::format("boxes {} and {} overlap", to_string(a->first), to_string(b->first));
    }
  if (elements != tensor.type.shape.elements())
    return fmt::format("its pieces hold {} of its {} elements", elements, tensor.type.shape.elements());
  return "";
}

}  // namespace

void check_coverage(std::string_view file_name, const Index& index) {
  for (const auto& [name, tensor] : index.tensors)
    if (const std::string what = fault(tensor); !what.empty())
      throw base::UserError(kWhere, "{}: tensor {} {} is incomplete: {}", base::in_quotes(file_name),
                            base::in_quotes(name), to_string(tensor.type.shape), what);
}

void merge(std::string_view file_name, Index& whole, Index part) {
  if (whole.step != part.step)
    throw base::UserError(kWhere, "{}: it is of step {}, not {}", base::in_quotes(file_name), part.step, whole.step);
  whole.files.merge(part.files);
  if (!part.files.empty())
    throw base::UserError(kWhere, "{}: file {} is another rank's", base::in_quotes(file_name),
                          base::in_quotes(part.files.begin()->first));
  for (auto& [name, tensor] : part.tensors) {
    const auto [place, fresh] = whole.tensors.try_emplace(name, StoredTensor{tensor.type, tensor.kind, {}});
    if (!fresh && (place->second.type != tensor.type || place->second.kind != tensor.kind))
      throw base::UserError(kWhere, "{}: tensor {} is {} {} {}, on another rank it is {} {} {}",
                            base::in_quotes(file_name), base::in_quotes(name), name_of(tensor.kind),
                            name_of(tensor.type.dtype), to_string(tensor.type.shape), name_of(place->second.kind),
                            name_of(place->second.type.dtype), to_string(place->second.type.shape));
    std::move(tensor.pieces.begin(), tensor.pieces.end(), std::back_inserter(place->second.pieces));
  }
}

}  // namespace kintsugi::checkpoint
