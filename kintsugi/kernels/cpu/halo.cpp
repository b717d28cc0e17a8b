#include "kintsugi/kernels/halo.h"

#include <algorithm>
#include <cstring>

#include "kintsugi/kernels/cpu/kernels.h"

namespace kintsugi::kernels::cpu {
namespace {

constexpr int64_t kHaloGrain = 1 << 15;  // bytes

// Calls f(row, a) for each part of each row, in shares.
template <typename F>
void for_rows(const KernelCall& call, int64_t rows, int64_t above, int64_t bytes, const F& f) {
  if (rows == 0 || bytes == 0) return;
  call.team.for_shares(rows * above, std::max<int64_t>(1, kHaloGrain / bytes), [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i) f(i % rows, i / rows);
  });
}

// The contributions to a position of y, in index order.
template <typename F>
void for_sources(const tensor::DimIndex& index, int64_t position, const F& f) {
  int64_t row = 0;
  for (const tensor::Segment& s : index.segments()) {
    if (s.global >= 0 && position >= s.global && position < s.global + s.count) f(row + position - s.global);
    row += s.count;
  }
}

}  // namespace

bool halo_takes(const Operands&) {
  return true;
}

bool halo_add_takes(const Operands& o) {
  return o.ins[0].dtype == tensor::DType::f32;
}

void halo_pack(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &packed = call.outs[0];
  const HaloRows s = halo_rows_of(call, x);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  for_rows(call, index.local(), s.above, s.below, [&](int64_t row, int64_t a) {
    std::memcpy(packed.data + s.in_packed(row, a), x.data + s.in_block(index[row], a), static_cast<size_t>(s.below));
  });
}

void halo_place(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &received = call.ins[1], &y = call.outs[0];
  const HaloRows from = halo_rows_of(call, x), to = halo_rows_of(call, y);
  const HaloPlaces places = halo_places_of(call, from);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  for_rows(call, to.rows, to.above, to.below, [&](int64_t row, int64_t a) {
    const int64_t source = index[row];
    if (!places.writes(source)) return;
    std::byte* out = y.data + to.in_block(row, a);
    const auto bytes = static_cast<size_t>(to.below);
    if (source < 0) {
      std::memset(out, 0, bytes);
    } else if (source < places.rows) {
      std::memcpy(out, x.data + from.in_block(source, a), bytes);
    } else {
      std::memcpy(out, received.data + from.in_packed(source - places.rows, a), bytes);
    }
  });
}

void halo_add(const KernelCall& call) {
  const tensor::View &x = call.ins[0], &received = call.ins[1], &y = call.outs[0];
  const HaloRows from = halo_rows_of(call, x), to = halo_rows_of(call, y);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  const int64_t elements = to.below / static_cast<int64_t>(sizeof(float));
  for_rows(call, to.rows, to.above, to.below, [&](int64_t row, int64_t a) {
    auto* out = reinterpret_cast<float*>(y.data + to.in_block(row, a));
    bool first = true;
    for_sources(index, row, [&](int64_t source) {
      const auto* in =
          reinterpret_cast<const float*>(source < from.rows ? x.data + from.in_block(source, a)
                                                            : received.data + from.in_packed(source - from.rows, a));
      for (int64_t i = 0; i < elements; ++i) out[i] = first ? in[i] : out[i] + in[i];
      first = false;
    });
    if (first) std::fill_n(out, elements, 0.0f);
  });
}

}  // namespace kintsugi::kernels::cpu
