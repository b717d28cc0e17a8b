#include "kintsugi/kernels/halo.h"

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {

HaloRows halo_rows_of(const KernelCall& call, const tensor::View& block) {
  const int axis = block.shape().find(call.attributes.text("dim"));
  base::require(axis >= 0, "kernel", "{} has no rows of \"{}\"", to_string(block.shape()), call.attributes.text("dim"));
  const auto at = static_cast<size_t>(axis);
  HaloRows rows = {.rows = block.shape()[at].size, .below = block.shape().stride(at) * tensor::size_of(block.dtype())};
  for (size_t i = 0; i < at; ++i) rows.above *= block.shape()[i].size;
  return rows;
}

HaloPlaces halo_places_of(const KernelCall& call, const HaloRows& from) {
  const std::string place = call.attributes.text_or("place", "");
  if (place.empty()) return {.rows = from.rows};
  base::require(place == "own" || place == "received", "kernel", "{} does not place \"{}\"", call.kind, place);
  if (place == "own") return {.rows = from.rows, .received = false};
  return {.rows = call.attributes.integer("rows"), .own = false};
}

}  // namespace kintsugi::kernels
