// Windows over up to three spatial dims of a value [samples spatial... channels], as device kernels of pools and
// resampling walk them: positions are decomposed dim by dim, and a piece is N adjacent channels.
#pragma once

#include <vector>

#include "kintsugi/kernels/gpu/places.h"
#include "kintsugi/tensor/window.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

constexpr int kSpatial = 3;

// Positions of a dim, some of which may be absent.
struct Present {
  int size = 1;
  bool all = true;
  LocalIndex index;

  __device__ __forceinline__ bool has(int at) const { return at >= 0 && at < size && (all || index[at] >= 0); }
};

// `index`: of which a prefix is used if it is longer than the dim.
inline Present present_of(int64_t size, const tensor::DimIndex& index) {
  Present made{.size = static_cast<int>(size), .all = true, .index = {}};
  int64_t begin = 0;
  for (const tensor::Segment& s : index.segments()) {
    made.all = made.all && (s.global >= 0 || begin >= size || s.count == 0);
    if (begin < size) begin += s.count;
  }
  made.all = made.all && begin >= size;
  if (!made.all) made.index = local_index(index);
  return made;
}

// The pieces of a value [samples positions... channels], with `wide` adjacent channels each.
struct ImagePieces {
  Divisor vectors, size[kSpatial];
  int64_t count = 0;

  // A sample, a position along each spatial dim, and the first channel.
  struct At {
    int64_t sample;
    int position[kSpatial];
    int64_t channel;
  };
  __device__ __forceinline__ At at(int64_t piece, int wide) const {
    At made;
    int64_t above = vectors.quotient(piece);
    made.channel = (piece - above * vectors.by) * wide;
    GPU_UNROLL
    for (int d = kSpatial - 1; d >= 0; --d) {
      const int64_t next = size[d].quotient(above);
      made.position[d] = static_cast<int>(above - next * size[d].by);
      above = next;
    }
    made.sample = above;
    return made;
  }
};

// Spatial dims of a shape, after leading dims of one position.
struct ImageShape {
  int64_t size[kSpatial] = {1, 1, 1}, channels = 1;
  int64_t samples = 0;

  int64_t positions() const { return size[0] * size[1] * size[2]; }
};

inline ImageShape image_shape(std::string_view kind, const tensor::Shape& shape) {
  base::require(shape.rank() >= 2 && shape.rank() <= 2 + kSpatial, "kernel", "{} of {} on a device", kind,
                to_string(shape));
  ImageShape made{.channels = shape[shape.rank() - 1].size, .samples = shape[0].size};
  const size_t skipped = kSpatial + 2 - shape.rank();
  for (size_t d = 1; d + 1 < shape.rank(); ++d) made.size[skipped + d - 1] = shape[d].size;
  base::require(made.positions() < int64_t{1} << 31, "kernel", "{} of {} positions on a device", kind,
                made.positions());
  return made;
}

inline ImagePieces image_pieces(const ImageShape& shape, int wide) {
  ImagePieces made;
  made.count = shape.samples * shape.positions() * (shape.channels / wide);
  made.vectors = Divisor(std::max<int64_t>(shape.channels / wide, 1));
  for (int d = 0; d < kSpatial; ++d) made.size[d] = Divisor(std::max<int64_t>(shape.size[d], 1));
  return made;
}

// Calls f with the number of adjacent channels that can be loaded and stored at a time, as a constant.
template <typename T, typename F, typename... P>
void with_wide_channels(int64_t channels, const F& f, const P*... pointers) {
  constexpr int kN = kWide<T>;
  if (channels % kN == 0 && all_wide(pointers...)) return f(std::integral_constant<int, kN>());
  f(std::integral_constant<int, 1>());
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
