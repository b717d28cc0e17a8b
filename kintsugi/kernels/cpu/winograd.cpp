// Each thread transforms a block of tiles to the 16 matrices [tile channel], multiplies them with the transformed
// weights [channel filter], and transforms the results back. For the gradient of the weights, both operands are
// transformed and each thread sums over its tiles.
//
// The bits of the forward pass depend neither on the number of tiles nor on the block of a rank: otherwise ReLU would
// turn differences in rounding into other gradients in other layouts.
#include "kintsugi/kernels/cpu/winograd.h"

#include <algorithm>

#include "kintsugi/kernels/cpu/gemm.h"
#include "kintsugi/kernels/cpu/kernels.h"
#include "kintsugi/kernels/cpu/simd_targets.h"
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kintsugi/kernels/cpu/winograd.cpp"
#include "hwy/foreach_target.h"
#include "kintsugi/kernels/cpu/simd-inl.h"
#include "kintsugi/kernels/cpu/tile-inl.h"

#ifndef KINTSUGI_WINOGRAD_ONCE
#define KINTSUGI_WINOGRAD_ONCE
namespace kintsugi::kernels::cpu {

// An image of a batch, [height width channels], and the tiles over it: `size` x `size` positions each, the first at
// (-low_row, -low_column), others 2 apart. Positions outside, and in rows other than `rows`, are zero.
struct TiledImage {
  float* data;
  int64_t height, width, channels;
  int64_t low_row, low_column;
  const float* zeros;  // [channels]
  base::Range rows = {0, height};
};

struct TileGrid {
  int64_t rows, columns;  // per image

  int64_t per_image() const { return rows * columns; }
};

}  // namespace kintsugi::kernels::cpu
#endif

HWY_BEFORE_NAMESPACE();
namespace kintsugi::kernels::cpu::HWY_NAMESPACE {
namespace {

// Loads and stores of a whole vector, or of its first lanes.
struct WholeVector {
  V get(const float* p) const { return load(p); }
  void put(V v, float* p) const { store(v, p); }
};
struct PartVector {
  int64_t n;
  V get(const float* p) const { return load_n(p, n); }
  void put(V v, float* p) const { store_n(v, p, n); }
};

// f(position, access) for all vectors of n elements.
template <typename F>
HWY_INLINE void for_vectors(int64_t n, const F& f) {
  int64_t i = 0;
  for (const int64_t N = lanes(); i + N <= n; i += N) f(i, WholeVector());
  if (i < n) f(i, PartVector{n - i});
}

// The addresses of the positions of a tile; those outside the image are `zeros`.
template <int kSize>
void find_positions(const TiledImage& image, const TileGrid& grid, int64_t tile, const float* (&at)[kSize][kSize]) {
  const int64_t in_image = tile % grid.per_image();
  const int64_t top = in_image / grid.columns * 2 - image.low_row,
                left = in_image % grid.columns * 2 - image.low_column;
  const float* first = image.data + tile / grid.per_image() * image.height * image.width * image.channels;
  for (int64_t r = 0; r < kSize; ++r)
    for (int64_t c = 0; c < kSize; ++c) {
      const int64_t row = top + r, column = left + c;
      const bool inside = row >= image.rows.begin && row < image.rows.end && column >= 0 && column < image.width;
      at[r][c] = inside ? first + (row * image.width + column) * image.channels : image.zeros;
    }
}

// B^T d
HWY_INLINE void spread(V d0, V d1, V d2, V d3, V& t0, V& t1, V& t2, V& t3) {
  t0 = hn::Sub(d0, d2), t1 = hn::Add(d1, d2), t2 = hn::Sub(d2, d1), t3 = hn::Sub(d1, d3);
}

}  // namespace

// to [16 tile channel] from the 4 x 4 positions of tiles: B^T d B. `step`: elements between matrices of `to`.
void transform_tiles(const TiledImage& image, const TileGrid& grid, base::Range tiles, float* to, int64_t step) {
  const float* at[4][4];
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, to += image.channels) {
    find_positions(image, grid, tile, at);
    for_vectors(image.channels, [&](int64_t c, auto access) HWY_ATTR {
      V t[4][4];
      for (int j = 0; j < 4; ++j)
        spread(access.get(at[0][j] + c), access.get(at[1][j] + c), access.get(at[2][j] + c), access.get(at[3][j] + c),
               t[0][j], t[1][j], t[2][j], t[3][j]);
      for (int i = 0; i < 4; ++i) {
        V u0, u1, u2, u3;
        spread(t[i][0], t[i][1], t[i][2], t[i][3], u0, u1, u2, u3);
        float* row = to + 4 * i * step + c;
        access.put(u0, row), access.put(u1, row + step), access.put(u2, row + 2 * step), access.put(u3, row + 3 * step);
      }
    });
  }
}

// to [16 tile filter] from the 2 x 2 positions of tiles: A d A^T.
void transform_gradient(const TiledImage& image, const TileGrid& grid, base::Range tiles, float* to, int64_t step) {
  const float* at[2][2];
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, to += image.channels) {
    find_positions(image, grid, tile, at);
    for_vectors(image.channels, [&](int64_t c, auto access) HWY_ATTR {
      V t[4][2];
      for (int j = 0; j < 2; ++j) {
        const V d0 = access.get(at[0][j] + c), d1 = access.get(at[1][j] + c);
        t[0][j] = d0, t[1][j] = hn::Add(d0, d1), t[2][j] = hn::Sub(d0, d1), t[3][j] = hn::Neg(d1);
      }
      for (int i = 0; i < 4; ++i) {
        float* row = to + 4 * i * step + c;
        access.put(t[i][0], row), access.put(hn::Add(t[i][0], t[i][1]), row + step);
        access.put(hn::Sub(t[i][0], t[i][1]), row + 2 * step), access.put(hn::Neg(t[i][1]), row + 3 * step);
      }
    });
  }
}

// The 2 x 2 positions of tiles, as far as inside the image, from [16 tile filter], `row` elements per tile: A^T m A.
void transform_back(const TiledImage& image, const TileGrid& grid, base::Range tiles, const float* from, int64_t step,
                    int64_t row) {
  const float* at[2][2];
  for (int64_t tile = tiles.begin; tile < tiles.end; ++tile, from += row) {
    find_positions(image, grid, tile, at);
    for_vectors(image.channels, [&](int64_t c, auto access) HWY_ATTR {
      V t[2][4];
      for (int j = 0; j < 4; ++j) {
        const float* m = from + j * step + c;
        const V m1 = access.get(m + 4 * step), m2 = access.get(m + 8 * step);
        t[0][j] = hn::Add(hn::Add(access.get(m), m1), m2);
        t[1][j] = hn::Sub(hn::Sub(m1, m2), access.get(m + 12 * step));
      }
      for (int i = 0; i < 2; ++i)
        for (int j = 0; j < 2; ++j) {
          if (at[i][j] == image.zeros) continue;
          const V y =
              j == 0 ? hn::Add(hn::Add(t[i][0], t[i][1]), t[i][2]) : hn::Sub(hn::Sub(t[i][1], t[i][2]), t[i][3]);
          access.put(y, const_cast<float*>(at[i][j]) + c);
        }
    });
  }
}

// Elements r of to [16 n] from those of weights [3 3 n], with the window in reverse: G g G^T.
void transform_weights(const float* weights, int64_t n, base::Range r, float* to) {
  for_vectors(r.size(), [&](int64_t offset, auto access) HWY_ATTR {
    const int64_t e = r.begin + offset;
    const V half = set(0.5f);
    const auto at = [&](int i, int j) HWY_ATTR { return access.get(weights + (8 - 3 * i - j) * n + e); };
    V t[4][3];
    for (int j = 0; j < 3; ++j) {
      const V g0 = at(0, j), g1 = at(1, j), g2 = at(2, j);
      const V ends = hn::Mul(half, hn::Add(g0, g2)), middle = hn::Mul(half, g1);
      t[0][j] = g0, t[1][j] = hn::Add(ends, middle), t[2][j] = hn::Sub(ends, middle), t[3][j] = g2;
    }
    for (int i = 0; i < 4; ++i) {
      const V ends = hn::Mul(half, hn::Add(t[i][0], t[i][2])), middle = hn::Mul(half, t[i][1]);
      float* row = to + 4 * i * n + e;
      access.put(t[i][0], row), access.put(hn::Add(ends, middle), row + n);
      access.put(hn::Sub(ends, middle), row + 2 * n), access.put(t[i][2], row + 3 * n);
    }
  });
}

// G g G^T of channels `rows` of weights [3 3 channels filters], in panels of two vectors of filters: [16 panel channel
// 2 * lanes], with zeros for absent filters.
void transform_panels(const float* weights, int64_t channels, int64_t filters, base::Range rows, float* to) {
  const int64_t n = channels * filters, width = 2 * lanes(), step = channels * ((filters + width - 1) / width * width);
  for (int64_t c = rows.begin; c < rows.end; ++c)
    for (int64_t k = 0; k < (filters + width - 1) / width * width; k += lanes()) {
      const int64_t some = std::min(filters - k, lanes());
      const V half = set(0.5f);
      const auto at = [&](int64_t window) HWY_ATTR {
        const float* p = weights + window * n + c * filters + k;
        return some == lanes() ? load(p) : some > 0 ? load_n(p, some) : zero();
      };
      V t[4][3];
      for (int j = 0; j < 3; ++j) {
        const V g0 = at(j), g2 = at(6 + j), ends = hn::Mul(half, hn::Add(g0, g2)), middle = hn::Mul(half, at(3 + j));
        t[0][j] = g0, t[1][j] = hn::Add(ends, middle), t[2][j] = hn::Sub(ends, middle), t[3][j] = g2;
      }
      float* panel = to + k / width * channels * width + c * width + k % width;
      for (int i = 0; i < 4; ++i) {
        const V ends = hn::Mul(half, hn::Add(t[i][0], t[i][2])), middle = hn::Mul(half, t[i][1]);
        float* first = panel + 4 * i * step;
        store(t[i][0], first), store(hn::Add(ends, middle), first + step);
        store(hn::Sub(ends, middle), first + 2 * step), store(t[i][2], first + 3 * step);
      }
    }
}

// c [16 tile panel 2 * lanes] = a [16 tile channel] times the panels. An element is the sum over channels in order,
// whatever the number of tiles.
void multiply_panels(const float* a, int64_t a_step, int64_t tiles, int64_t channels, const float* panels,
                     int64_t filters, float* c, int64_t c_step) {
  const int64_t width = 2 * lanes(), padded = (filters + width - 1) / width * width;
  for (int64_t i = 0; i < 16; ++i)
    for (int64_t k = 0; k < padded; k += width)
      multiply_tile(tiles, width, channels, {a + i * a_step, channels, 1}, panels + (i * padded + k) * channels, width,
                    c + i * c_step + k, padded, false);
}

int64_t panel_width() {
  return 2 * lanes();
}

// Elements r of the gradient of weights [3 3 n], from the sum of `parts` matrices [16 n]: G^T u G.
void transform_weights_back(const float* from, int parts, int64_t n, base::Range r, float* weights) {
  for_vectors(r.size(), [&](int64_t offset, auto access) HWY_ATTR {
    const int64_t e = r.begin + offset;
    const V half = set(0.5f);
    const auto at = [&](int i, int j) HWY_ATTR {
      const float* p = from + (4 * i + j) * n + e;
      V sum = access.get(p);
      for (int k = 1; k < parts; ++k) sum = hn::Add(sum, access.get(p + k * 16 * n));
      return sum;
    };
    V t[3][4];
    for (int j = 0; j < 4; ++j) {
      const V u1 = at(1, j), u2 = at(2, j), both = hn::Mul(half, hn::Add(u1, u2));
      t[0][j] = hn::Add(at(0, j), both), t[1][j] = hn::Mul(half, hn::Sub(u1, u2)), t[2][j] = hn::Add(both, at(3, j));
    }
    for (int i = 0; i < 3; ++i) {
      const V both = hn::Mul(half, hn::Add(t[i][1], t[i][2]));
      float* row = weights + 3 * i * n + e;
      access.put(hn::Add(t[i][0], both), row), access.put(hn::Mul(half, hn::Sub(t[i][1], t[i][2])), row + n);
      access.put(hn::Add(both, t[i][3]), row + 2 * n);
    }
  });
}

}  // namespace kintsugi::kernels::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace kintsugi::kernels::cpu {

HWY_EXPORT(transform_tiles);
HWY_EXPORT(transform_gradient);
HWY_EXPORT(transform_back);
HWY_EXPORT(transform_weights);
HWY_EXPORT(transform_weights_back);
HWY_EXPORT(transform_panels);
HWY_EXPORT(multiply_panels);
HWY_EXPORT(panel_width);

namespace {

constexpr int64_t kMatrices = 16, kFewestChannels = 16, kWidestPanel = 32;

TileGrid grid_over(int64_t rows, int64_t columns) {
  return {(rows + 1) / 2, (columns + 1) / 2};
}

// The tiles are those of the output of a pass, or of y.
// `before`: positions of the first tiles before the image, 0 or 1.
TileGrid tiles_over(const ConvolutionSizes& s, WinogradStart before) {
  const auto& sizes = s.pass == ConvolutionPass::input ? s.in : s.out;
  return grid_over(sizes[0] + before.row, sizes[1] + before.column);
}

// Tiles transformed together: their matrices should remain in the cache, but products of few rows are slow.
int64_t tiles_together(const ConvolutionSizes& s) {
  constexpr int64_t kFloats = int64_t{1} << 19, kFewest = 128, kMost = 512;
  const int64_t fit = std::clamp(kFloats / (kMatrices * (s.channels + s.filters)) / 16 * 16, kFewest, kMost);
  return std::min(fit, s.samples * tiles_over(s, {1, 1}).per_image());
}

// Parts of the scratch. The matrices of tiles are per thread, for the weight gradient also those of the weights.
struct WinogradScratch {
  float *zeros, *weights, *tiles;
  int64_t weights_step, x_step, y_step, tiles_step;  // floats per matrix of weights and of tiles; of all of a thread
  int64_t floats;
};

WinogradScratch winograd_parts(const ConvolutionSizes& s, int threads, float* memory) {
  // Filters in whole panels of any target.
  const bool forward = s.pass == ConvolutionPass::forward;
  const int64_t filters = forward ? (s.filters + kWidestPanel - 1) / kWidestPanel * kWidestPanel : s.filters;
  const int64_t zeros = (std::max(s.channels, s.filters) + 15) / 16 * 16, weights = s.channels * filters,
                x = tiles_together(s) * s.channels, y = tiles_together(s) * filters,
                parts = s.pass == ConvolutionPass::weight ? threads : 1, tiles = kMatrices * (x + y);
  return {.zeros = memory,
          .weights = memory + zeros,
          .tiles = memory + zeros + kMatrices * weights * parts,
          .weights_step = weights,
          .x_step = x,
          .y_step = y,
          .tiles_step = tiles,
          .floats = zeros + kMatrices * weights * parts + tiles * threads};
}

// f(block, first float of the thread's tiles) for the blocks of a range of tiles.
template <typename F>
void for_blocks(base::Range tiles, int64_t block, const F& f) {
  for (int64_t begin = tiles.begin; begin < tiles.end; begin += block)
    f(base::Range{begin, std::min(begin + block, tiles.end)});
}

}  // namespace

bool is_winograd(const ConvolutionSizes& s) {
  const auto both = [](const std::array<int64_t, kMostWindows>& list, int64_t size) {
    return list[0] == size && list[1] == size;
  };
  return s.windows == 2 && s.groups == 1 && both(s.kernel, 3) && both(s.stride, 1) && both(s.dilation, 1) &&
         s.channels >= kFewestChannels && s.filters >= kFewestChannels;
}

int64_t winograd_scratch(const ConvolutionSizes& sizes, int threads) {
  return winograd_parts(sizes, threads, nullptr).floats;
}

void winograd(const ConvolutionSizes& s, std::span<const base::Range> rows, float* x, float* weights, float* y,
              float* scratch, base::ThreadTeam& team, WinogradStart first) {
  const WinogradScratch m = winograd_parts(s, team.size(), scratch);
  std::fill(m.zeros, m.weights, 0.0f);
  const bool forward = s.pass == ConvolutionPass::forward;
  const WinogradStart before = forward ? WinogradStart{first.row % 2, first.column % 2} : WinogradStart{};
  const TileGrid grid = tiles_over(s, before);
  const int64_t tiles = s.samples * grid.per_image(), block = tiles_together(s), both = s.channels * s.filters;
  constexpr int64_t kTileGrain = 16;  // tiles, and elements of weights
  const TiledImage images = {x, s.in[0], s.in[1], s.channels, s.low[0] + before.row, s.low[1] + before.column, m.zeros};
  if (s.pass == ConvolutionPass::weight) {
    const TiledImage gradient = {y, s.out[0], s.out[1], s.filters, 0, 0, m.zeros};
    int parts = 0;  // of threads with tiles, which come first
    for (int t = 0; t < team.size(); ++t) parts += base::share(tiles, t, team.size()).size() > 0;
    const auto part_of = [&](int thread) {
      int part = 0;
      for (int t = 0; t < thread; ++t) part += base::share(tiles, t, team.size()).size() > 0;
      return part;
    };
    team.run([&](int thread) {
      const base::Range mine = base::share(tiles, thread, team.size());
      if (mine.size() == 0) return;
      float *sum = m.weights + part_of(thread) * kMatrices * both, *left = m.tiles + thread * m.tiles_step,
            *right = left + kMatrices * m.x_step;
      for_blocks(mine, block, [&](base::Range r) {
        HWY_DYNAMIC_DISPATCH(transform_tiles)(images, grid, r, left, m.x_step);
        HWY_DYNAMIC_DISPATCH(transform_gradient)(gradient, grid, r, right, m.y_step);
        for (int64_t i = 0; i < kMatrices; ++i)
          multiply({.m = s.channels,
                    .n = s.filters,
                    .k = r.size(),
                    .a = left + i * m.x_step,
                    .a_row = 1,
                    .a_column = s.channels,
                    .b = right + i * m.y_step,
                    .b_row = s.filters,
                    .b_column = 1,
                    .c = sum + i * both,
                    .c_row = s.filters,
                    .accumulate = r.begin != mine.begin});
      });
    });
    team.for_shares(both, kTileGrain, [&](base::Range r, int) {
      HWY_DYNAMIC_DISPATCH(transform_weights_back)(m.weights, parts, both, r, weights);
    });
    return;
  }
  if (forward) {
    const int64_t width = HWY_DYNAMIC_DISPATCH(panel_width)(), padded = (s.filters + width - 1) / width * width;
    team.for_shares(s.channels, 1, [&](base::Range r, int) {
      HWY_DYNAMIC_DISPATCH(transform_panels)(weights, s.channels, s.filters, r, m.weights);
    });
    for (const base::Range& range : rows) {
      const int64_t top = (range.begin + before.row) / 2, bottom = (range.end - 1 + before.row) / 2 + 1;
      const TileGrid own = {bottom - top, grid.columns};
      TiledImage from = images;
      from.low_row -= 2 * top;
      const TiledImage result = {y, s.out[0], s.out[1], s.filters, before.row - 2 * top, before.column, m.zeros, range};
      team.for_shares(s.samples * own.per_image(), kTileGrain, [&](base::Range mine, int thread) {
        float *left = m.tiles + thread * m.tiles_step, *made = left + kMatrices * m.x_step;
        for_blocks(mine, block, [&](base::Range r) {
          HWY_DYNAMIC_DISPATCH(transform_tiles)(from, own, r, left, m.x_step);
          HWY_DYNAMIC_DISPATCH(multiply_panels)
          (left, m.x_step, r.size(), s.channels, m.weights, s.filters, made, m.y_step);
          HWY_DYNAMIC_DISPATCH(transform_back)(result, own, r, made, m.y_step, padded);
        });
      });
    }
    return;
  }
  // The gradient of x is a convolution of that of y with the reversed window.
  const TiledImage dy = {y, s.out[0], s.out[1], s.filters, 2 - s.low[0], 2 - s.low[1], m.zeros},
                   dx = {x, s.in[0], s.in[1], s.channels, 0, 0, m.zeros};
  team.for_shares(both, kTileGrain, [&](base::Range r, int) {
    HWY_DYNAMIC_DISPATCH(transform_weights)(weights, both, r, m.weights);
  });
  team.for_shares(tiles, kTileGrain, [&](base::Range mine, int thread) {
    float *left = m.tiles + thread * m.tiles_step, *made = left + kMatrices * m.y_step;
    for_blocks(mine, block, [&](base::Range r) {
      HWY_DYNAMIC_DISPATCH(transform_tiles)(dy, grid, r, left, m.y_step);
      for (int64_t i = 0; i < kMatrices; ++i)
        multiply({.m = r.size(),
                  .n = s.channels,
                  .k = s.filters,
                  .a = left + i * m.y_step,
                  .a_row = s.filters,
                  .a_column = 1,
                  .b = m.weights + i * both,
                  .b_row = 1,
                  .b_column = s.filters,
                  .c = made + i * m.x_step,
                  .c_row = s.channels});
      HWY_DYNAMIC_DISPATCH(transform_back)(dx, grid, r, made, m.x_step, s.channels);
    });
  });
}

}  // namespace kintsugi::kernels::cpu
#endif
