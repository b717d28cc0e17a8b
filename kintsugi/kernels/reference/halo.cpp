#include "kintsugi/kernels/halo.h"

#include <algorithm>

#include "kintsugi/base/error.h"
#include "kintsugi/kernels/reference/reference.h"
#include "kintsugi/kernels/reference/values.h"

namespace kintsugi::kernels::reference {

void halo_pack(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &packed = call.outs[0];
  const HaloRows s = halo_rows_of(call, x);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  for (int64_t row = 0; row < index.local(); ++row)
    for (int64_t a = 0; a < s.above; ++a)
      std::copy_n(x.data + s.in_block(index[row], a), s.below, packed.data + s.in_packed(row, a));
}

void halo_place(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &received = call.ins[1], &y = call.outs[0];
  const HaloRows from = halo_rows_of(call, x), to = halo_rows_of(call, y);
  const HaloPlaces places = halo_places_of(call, from);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  for (int64_t row = 0; row < to.rows; ++row)
    for (int64_t a = 0; a < to.above; ++a) {
      const int64_t source = index[row];
      if (!places.writes(source)) continue;
      std::byte* out = y.data + to.in_block(row, a);
      if (source < 0) {
        std::fill_n(out, to.below, std::byte{0});
      } else if (source < places.rows) {
        std::copy_n(x.data + from.in_block(source, a), to.below, out);
      } else {
        std::copy_n(received.data + from.in_packed(source - places.rows, a), to.below, out);
      }
    }
}

void halo_add(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &received = call.ins[1], &y = call.outs[0];
  const HaloRows from = halo_rows_of(call, x), to = halo_rows_of(call, y);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  const std::vector<double> own = load(x), others = received.data ? load(received) : std::vector<double>();
  std::vector<double> sums(static_cast<size_t>(y.type.shape.elements()), 0.0);
  const int64_t size = tensor::size_of(x.dtype());
  for (int64_t row = 0; row < index.local(); ++row) {
    if (index[row] < 0) continue;
    for (int64_t a = 0; a < to.above; ++a) {
      const bool mine = row < from.rows;
      const int64_t source = mine ? from.in_block(row, a) : from.in_packed(row - from.rows, a);
      const std::vector<double>& values = mine ? own : others;
      for (int64_t i = 0; i < to.below / size; ++i)
        sums[static_cast<size_t>(to.in_block(index[row], a) / size + i)] +=
            values[static_cast<size_t>(source / size + i)];
    }
  }
  store(call, 0, sums);
}

}  // namespace kintsugi::kernels::reference
