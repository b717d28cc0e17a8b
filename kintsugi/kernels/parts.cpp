#include "kintsugi/kernels/parts.h"

#include "kintsugi/base/error.h"

namespace kintsugi::kernels {

const tensor::DimIndex& part_index(const KernelCall& call, int64_t part) {
  const std::string& dim = call.attributes.text("dim");
  int64_t at = 0;
  for (const NamedIndex& named : call.indices)
    if (named.dim == dim && at++ == part) return named.index;
  throw base::InternalError("kernel", "no index of \"{}\" for part {}", dim, part);
}

Parts parts_of(const KernelCall& call, const tensor::View& whole, const tensor::View& stacked) {
  const std::string& dim = call.attributes.text("dim");
  const tensor::Shape &x = whole.shape(), &y = stacked.shape();
  const size_t first = y.rank() > x.rank() ? 1 : 0;
  bool fits = y.rank() == x.rank() + first && x.has(dim) && (first == 0 || y[0].name == "part") &&
              whole.dtype() == stacked.dtype();
  for (size_t i = 0; fits && i < x.rank(); ++i)
    fits = y[first + i].name == x[i].name && (x[i].name == dim || y[first + i].size == x[i].size);
  if (!fits)
    throw base::InternalError("kernel", "{} does not stack to {} along \"{}\"", to_string(x), to_string(y), dim);

  const auto axis = static_cast<size_t>(x.find(dim));
  Parts p{.parts = first ? y[0].size : 1, .above = 1, .size = x[axis].size, .length = y.size(dim), .below = 0};
  p.below = x.stride(axis) * tensor::size_of(whole.dtype());
  for (size_t i = 0; i < axis; ++i) p.above *= x[i].size;
  int64_t entries = 0;
  for (const NamedIndex& named : call.indices) {
    if (named.dim != dim) continue;
    ++entries;
    base::require(named.index.local() == p.length, "kernel", "a part of \"{}\" has {} positions, not {}", dim,
                  named.index.local(), p.length);
    for (const tensor::Segment& s : named.index.segments())
      base::require(s.global + s.count <= p.size || s.global < 0, "kernel", "positions {} to {} of {} along \"{}\"",
                    s.global, s.global + s.count, p.size, dim);
  }
  base::require(entries == p.parts, "kernel", "{} indices of \"{}\" for {} parts", entries, dim, p.parts);
  return p;
}

}  // namespace kintsugi::kernels
