// Blocks of c's columns, for each of which b is packed into the L2 cache. Panels of a's rows are multiplied by it, a
// part of k at a time, which stays in the L1 cache; between parts, the sums of a row of tiles are kept in the thread's
// scratch. a is used in place if its rows consist of whole contiguous steps of k; otherwise all threads pack it first,
// some rows at a time.
#include "kintsugi/kernels/cpu/gemm_bf16.h"

#include <unistd.h>

#include <algorithm>

#include "kintsugi/kernels/cpu/bf16_finish.h"
#include "kintsugi/kernels/cpu/bf16_unit.h"
#include "kintsugi/kernels/cpu/thin_bf16.h"

namespace kintsugi::kernels::cpu {
namespace {

using base::Range;
using tensor::bf16;
using tensor::DType;

constexpr int64_t kMostK = 4096;  // per sum, where c is fp32: panels of more would not fit into the cache
constexpr int64_t kFar = 8192;    // pack rows of a that are further apart, each on separate pages
constexpr int64_t kMostA = 4 << 20, kMostB = 384 << 10;  // elements to pack at a time
constexpr int64_t kFarSums = 1 << 19;  // elements of c, above the L2 cache: prefetched before they are written
constexpr int64_t kPart = 256;         // of k: a panel of a, 16 KiB, stays in the L1 cache while b's are streamed

int64_t round_up(int64_t x, int64_t grain) {
  return (x + grain - 1) / grain * grain;
}

int64_t panel_size(int64_t k) {
  return kTile * round_up(k, kStep);
}

// Rows, or columns, whose panels have at most `elements`; at least one panel.
int64_t fitting(int64_t all, int64_t k, int64_t elements) {
  const int64_t panels = std::max<int64_t>(elements / std::max<int64_t>(panel_size(k), 1), 1);
  return std::min(round_up(all, kTile), panels * kTile);
}

bool packs_a(const Bf16Product& p) {
  return p.a_column != 1 || p.k % kStep != 0 || p.a_row > kFar;
}

// Three eighths of this machine's L2 cache, in elements.
int64_t cached_elements() {
  static const int64_t bytes = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return bytes > 0 ? bytes * 3 / 16 : kMostB;
}

// Per-thread memory: a block of b, some rows of a, and tiles of sums, one per panel of the block if k has several
// parts.
struct Own {
  bf16* b;
  bf16* a;
  float* tiles;
};
// Panels packed at a time, in elements; also sufficient for smaller matmuls.
int64_t packed_size(int64_t all, int64_t k, int64_t elements) {
  return std::min(round_up(all, kTile) / kTile * panel_size(k), std::max(elements, panel_size(k)));
}
// As many as the shortest panels of several parts, so that it is also sufficient for a smaller k.
int64_t tiles_size(const Bf16Product& p) {
  return kTile * kTile * 2 * (p.k > kPart ? fitting(p.n, kPart + 1, kMostB) / kTile : 1);
}
int64_t own_size(const Bf16Product& p) {
  const int64_t panels = tiles_size(p) + panel_size(p.k) + packed_size(p.n, p.k, kMostB);
  return std::max(panels, 2 * thin_scratch(p.k));
}
Own own_of(const Bf16Product& p, const Bf16Scratch& scratch, int thread) {
  bf16* at = scratch.threads + thread * scratch.thread_size;
  bf16* a = at + tiles_size(p);
  return {a + panel_size(p.k), a, reinterpret_cast<float*>(at)};
}

Bf16Panel rows_of_a(const Bf16Product& p, int64_t row) {
  return {p.a + row * p.a_row, p.a_row, p.a_column, std::min(kTile, p.m - row), p.k};
}
Bf16Panel columns_of_b(const Bf16Product& p, int64_t column) {
  return {p.b + column * p.b_column, p.b_column, p.b_row, std::min(kTile, p.n - column), p.k};
}

// Packs panels of a's rows from `first`, of `rows` in total, to their places in `to`.
void pack_rows(const Bf16Unit& unit, const Bf16Product& p, int64_t first, Range rows, bf16* to) {
  for (int64_t row = rows.begin; row < rows.end; row += kTile)
    unit.pack_a(rows_of_a(p, row), to + (row - first) / kTile * panel_size(p.k));
}

constexpr int64_t kLine = 64;

// Prefetches a tile of c while its sums are computed.
void fetch_tile(const Bf16Product& p, int64_t row, int64_t column, int64_t height, int64_t width) {
  const int64_t size = tensor::size_of(p.c_dtype);
  for (int64_t i = row; i < row + height; ++i) {
    const std::byte* begin = p.c + (i * p.c_row + column) * size;
    for (int64_t at = 0; at < width * size; at += kLine) __builtin_prefetch(begin + at, 1);
  }
}

// Prefetches the operands of an epilogue for some rows into the L2 cache while the sums of these rows are computed,
// some lines with each tile, since the operands of tiles would wait behind many.
class EpilogueFetch {
 public:
  EpilogueFetch(const Bf16Product& p, int64_t row, int64_t height, Range columns, int64_t tiles) : tiles_(tiles) {
    if (!p.epilogue) return;
    const int64_t size = tensor::size_of(p.c_dtype);
    at_ = p.epilogue.x + (row * p.c_row + columns.begin) * size;
    row_bytes_ = p.c_row * size;
    row_lines_ = (columns.size() * size + kLine - 1) / kLine;
    lines_ = height * row_lines_;
  }
  void next() {
    for (const int64_t end = lines_ * ++tile_ / tiles_; line_ < end; ++line_)
      __builtin_prefetch(at_ + line_ / row_lines_ * row_bytes_ + line_ % row_lines_ * kLine, 0, 2);
  }

 private:
  const std::byte* at_ = nullptr;
  int64_t row_bytes_ = 0, row_lines_ = 0, lines_ = 0, tiles_;
  int64_t line_ = 0, tile_ = 0;
};

// A block of c: at most kTile rows from `row`, and `columns`, whose packed panels are own.b. `t`: the rows of a.
void multiply_rows(const Bf16Unit& unit, const Bf16Product& p, Bf16Tile t, int64_t row, int64_t height, Range columns,
                   const Own& own) {
  const bf16* a = t.a;
  const int64_t panel = panel_size(p.k), steps = panel / (kTile * kStep), most = kPart / kStep;
  const bool wide = p.c_dtype == DType::f32 && !goes_past_caches(p);
  const bool plain = wide && !p.accumulate && !p.bias.data && height == kTile && steps <= most;
  const bool far = !goes_past_caches(p) && p.m * p.n > kFarSums;
  const int64_t parts = std::max<int64_t>((steps + most - 1) / most, 1);
  EpilogueFetch fetch(p, row, height, columns, parts * ((columns.size() + kTile - 1) / kTile));
  int64_t s = 0;
  do {
    t.steps = std::min(most, steps - s), t.adds = s > 0, t.a = a + s * t.a_step;
    const bool last = s + t.steps == steps;
    for (int64_t j = columns.begin; j < columns.end; j += kTile) {
      const int64_t width = std::min(kTile, columns.end - j), at = (j - columns.begin) / kTile;
      const bool in_place = plain && width == kTile;
      t.b = own.b + at * panel + s * kTile * kStep;
      t.c = in_place ? reinterpret_cast<float*>(p.c) + row * p.c_row + j
                     : own.tiles + (steps > most ? at : 0) * kTile * kTile;
      t.c_row = in_place ? p.c_row : kTile;
      if (last && far) fetch_tile(p, row, j, height, width);
      fetch.next();
      unit.multiply(t);
      if (last && !in_place) unit.finish(p, t.c, row, j, height, width);
    }
    s += t.steps;
  } while (s < steps);
  if (p.epilogue) apply(p.epilogue, row * p.c_row + columns.begin, height, p.c_row, columns.size());
}

// A block of c. `a`: the packed panels from row `first`, or null.
void multiply_block(const Bf16Unit& unit, const Bf16Product& p, const bf16* a, int64_t first, Range rows, Range columns,
                    const Own& own) {
  if (rows.size() == 0 || columns.size() == 0) return;
  const int64_t panel = panel_size(p.k);
  const int64_t most = fitting(columns.size(), p.k, std::min(kMostB, cached_elements()));
  const int64_t blocks = (columns.size() + most - 1) / most;
  unit.begin();
  for (int64_t block = 0; block < blocks; ++block) {
    const Range part = base::share(columns.size(), block, blocks, kTile);
    const Range here = {columns.begin + part.begin, columns.begin + part.end};
    for (int64_t j = here.begin; j < here.end; j += kTile)
      unit.pack_b(columns_of_b(p, j), own.b + (j - here.begin) / kTile * panel);
    for (int64_t i = rows.begin; i < rows.end; i += kTile) {
      const int64_t height = std::min(kTile, rows.end - i);
      Bf16Tile t;
      if (!a && height == kTile) {
        t.a = p.a + i * p.a_row, t.a_row = p.a_row, t.a_step = kStep;
      } else {
        if (!a) unit.pack_a(rows_of_a(p, i), own.a);
        t.a = a ? a + (i - first) / kTile * panel : own.a;
        t.a_row = kStep, t.a_step = kTile * kStep;
      }
      multiply_rows(unit, p, t, i, height, here, own);
    }
  }
  unit.end();
}

// Splits rows and columns of c over a grid of threads. In units of a multiplication, packing a column costs 60 and
// reading a row 16 (measured with AMX, the fastest unit).
struct Grid {
  int64_t rows, columns;
};
Grid grid_of(int64_t m, int64_t n, int threads) {
  Grid best{1, threads};
  int64_t best_cost = -1;
  for (int64_t rows = 1; rows <= threads; ++rows) {
    if (threads % rows != 0) continue;
    const int64_t columns = threads / rows;
    const int64_t h = round_up((m + rows - 1) / rows, kTile), w = round_up((n + columns - 1) / columns, kTile);
    const int64_t cost = h * w + 60 * w + 16 * h;
    if (best_cost < 0 || cost < best_cost) best = {rows, columns}, best_cost = cost;
  }
  return best;
}

// Calls f with the matmuls over parts of k; all except the first accumulate into c.
template <typename F>
void for_parts(const Bf16Product& p, const F& f) {
  if (p.k <= kMostK || p.c_dtype != DType::f32) return f(p);
  for (int64_t at = 0; at < p.k; at += kMostK) {
    Bf16Product part = p;
    part.k = std::min(kMostK, p.k - at);
    part.a += at * p.a_column, part.b += at * p.b_row;
    if (at > 0) part.accumulate = true, part.bias.data = nullptr;
    if (at + kMostK < p.k) part.epilogue = {};
    f(part);
  }
}

void multiply_together(const Bf16Product& p, const Bf16Scratch& scratch, base::ThreadTeam& team) {
  if (is_thin(p)) return multiply_thin(p, scratch, team);
  const Bf16Unit& unit = bf16_unit();
  const bf16* packed = packs_a(p) ? scratch.a : nullptr;
  const int64_t at_once = packed ? fitting(p.m, p.k, kMostA) : std::max<int64_t>(p.m, 1);
  for (int64_t first = 0; first < p.m; first += at_once) {
    const int64_t m = std::min(at_once, p.m - first);
    if (packed)
      team.for_shares(m, kTile, [&](Range r, int) {
        pack_rows(unit, p, first, {first + r.begin, first + r.end}, scratch.a);
      });
    const Grid grid = grid_of(m, p.n, team.size());
    team.run([&](int thread) {
      const Range r = base::share(m, thread / grid.columns, grid.rows, kTile);
      const Range columns = base::share(p.n, thread % grid.columns, grid.columns, kTile);
      multiply_block(unit, p, packed, first, {first + r.begin, first + r.end}, columns, own_of(p, scratch, thread));
    });
  }
}

void multiply_by_one(const Bf16Product& p, const Bf16Scratch& scratch, int thread) {
  if (is_thin(p)) return multiply_thin(p, {0, p.n}, thin_scratch_of(scratch, thread));
  const Bf16Unit& unit = bf16_unit();
  bf16* a = packs_a(p) ? scratch.a + thread * scratch.a_size : nullptr;
  const int64_t at_once = a ? fitting(p.m, p.k, kMostA) : std::max<int64_t>(p.m, 1);
  for (int64_t first = 0; first < p.m; first += at_once) {
    const Range rows = {first, std::min(first + at_once, p.m)};
    if (a) pack_rows(unit, p, first, rows, a);
    multiply_block(unit, p, a, first, rows, {0, p.n}, own_of(p, scratch, thread));
  }
}

}  // namespace

Bf16Scratch take_bf16_scratch(std::initializer_list<Bf16Product> products, int threads, bool alone, Scratch& scratch) {
  Bf16Scratch taken;
  for (Bf16Product p : products) {
    const bool packs = packs_a(p);
    if (p.c_dtype == DType::f32) p.k = std::min(p.k, kMostK);
    if (packs) taken.a_size = std::max(taken.a_size, packed_size(p.m, p.k, kMostA));
    taken.thread_size = std::max(taken.thread_size, own_size(p));
    if (threads > 1 && !alone) taken.sums_size = std::max(taken.sums_size, thin_sums(p));
  }
  taken.a = scratch.take<bf16>(taken.a_size * (alone ? threads : 1));
  taken.threads = scratch.take<bf16>(taken.thread_size * threads);
  taken.sums = scratch.take<float>(taken.sums_size);
  return taken;
}

void multiply(const Bf16Product& p, const Bf16Scratch& scratch, base::ThreadTeam& team) {
  for_parts(p, [&](const Bf16Product& part) { multiply_together(part, scratch, team); });
}

void multiply_alone(const Bf16Product& p, const Bf16Scratch& scratch, int thread) {
  for_parts(p, [&](const Bf16Product& part) { multiply_by_one(part, scratch, thread); });
}

}  // namespace kintsugi::kernels::cpu
