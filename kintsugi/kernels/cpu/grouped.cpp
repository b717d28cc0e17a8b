// Grouped matmuls of all experts over the slots in use. Those of an expert are its rows: a run of them per sample.
// Threads take parts dynamically. Long runs in fp32 are multiplied in place, by some columns of the weight at a time;
// others are packed, so that samples with few tokens share a matmul. a: [batch expert slot depth], weight: [expert
// depth columns] or [expert columns depth], y: [batch expert slot columns], or for a weight gradient the sum over all
// rows of a[row] x b[row].
#include <algorithm>
#include <atomic>
#include <numeric>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/experts.h"
#include "kintsugi/kernels/cpu/filled_slots.h"
#include "kintsugi/kernels/cpu/gemm.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::View;

constexpr int64_t kBlockRows = 512;

// oneDNN multiplies by a matrix whose rows are a multiple of 4 KiB apart at half its speed, since they share a set of
// the L1 cache; so rows are packed a little further apart, and a weight is copied by some columns at a time.
constexpr int64_t kStrip = 256, kGap = 16;
constexpr int64_t kRowsWorthCopy = 16;  // fewer rows use the weight in place
constexpr int64_t kLongRun = 24;        // mean rows of a sample from which on packing is slower

bool is_weight(const Shape& shape) {
  return shape.rank() == 3 && shape[0].name == "expert";
}

// The rows of an expert, in blocks.
class Rows : public FilledSlots {
 public:
  Rows(const KernelCall& call, const View& of) : FilledSlots(call, of.shape(), call.ins[GroupedIn::kCounts]) {}

  int64_t blocks(int64_t expert) const { return (filled(expert) + kBlockRows - 1) / kBlockRows; }

  // Calls f(row of the operand, row of the block, rows) for the runs of a block.
  template <typename F>
  void for_runs(int64_t expert, int64_t block, const F& f) const {
    const int64_t begin = block * kBlockRows, end = begin + kBlockRows;
    for (int64_t b = 0, at = 0; b < batch() && at < end; ++b) {
      const int64_t n = filled(b, expert), from = std::max(begin, at), to = std::min(end, at + n);
      if (from < to) f((b * experts() + expert) * slots() + from - at, from - begin, to - from);
      at += n;
    }
  }
  int64_t rows_of(int64_t expert, int64_t block) const {
    return std::min(kBlockRows, filled(expert) - block * kBlockRows);
  }
  bool has_long_runs(int64_t expert) const {
    int64_t runs = 0;
    for (int64_t b = 0; b < batch(); ++b) runs += filled(b, expert) > 0;
    return runs > 0 && filled(expert) >= kLongRun * runs;
  }
};

// Memory of one thread.
struct Packed {
  float *a = nullptr, *b = nullptr, *y = nullptr, *weight = nullptr, *strip = nullptr;
};

struct Sizes {
  int64_t experts = 0;
  int64_t rows = 0;  // per block, at most
  int64_t depth = 0, columns = 0;
  bool wide_weight = false;  // an fp32 copy
  bool of_weights = false;   // y is the gradient of a weight
  bool transposed = false;   // the weight is [expert columns depth]
};

Sizes sizes_of(const Operands& o) {
  const Shape &a = o.ins[GroupedIn::kA].shape, &b = o.ins[GroupedIn::kB].shape, &y = o.outs[0].shape;
  Sizes s;
  s.experts = a[1].size;
  s.rows = std::min(kBlockRows, a[0].size * a[2].size);
  s.of_weights = is_weight(y);
  s.depth = a[3].size;
  s.columns = s.of_weights ? b[3].size : y[3].size;
  s.wide_weight = s.of_weights ? o.outs[0].dtype != DType::f32 : o.ins[GroupedIn::kB].dtype != DType::f32;
  s.transposed = !s.of_weights && b[1].name == y[3].name && s.depth != 0;
  return s;
}

// `by_rows`: an element per expert.
Packed take_packed(const Sizes& s, int threads, int thread, Scratch& scratch, int64_t** by_rows = nullptr) {
  int64_t* const experts = scratch.take<int64_t>(s.experts);
  if (by_rows) *by_rows = experts;
  Packed mine;
  for (int t = 0; t < threads; ++t) {
    Packed p = {.a = scratch.take<float>(s.rows * (s.depth + kGap))};
    (s.of_weights ? p.b : p.y) = scratch.take<float>(s.rows * (s.columns + kGap));
    if (s.wide_weight) p.weight = scratch.take<float>(s.depth * s.columns);
    if (!s.of_weights && !s.transposed) p.strip = scratch.take<float>(s.depth * (std::min(s.columns, kStrip) + kGap));
    if (t == thread) mine = p;
  }
  return mine;
}

// The rows of a block, one after another, `stride` floats apart.
void pack(const Rows& rows, int64_t expert, int64_t block, const View& from, float* to, int64_t stride) {
  const int64_t width = from.shape()[3].size, size = tensor::size_of(from.dtype());
  rows.for_runs(expert, block, [&](int64_t row, int64_t at, int64_t n) {
    for (int64_t i = 0; i < n; ++i)
      widen(from.dtype(), from.data + (row + i) * width * size, to + (at + i) * stride, width);
  });
}

// Calls f(expert, part, memory) for `parts(expert)` parts of each expert, on all threads; experts with many rows first,
// so that threads end together.
template <typename Parts, typename F>
void for_parts(const KernelCall& call, const Sizes& s, const Rows& rows, const Parts& parts, const F& f) {
  int64_t* experts = nullptr;
  Scratch all(call.workspace);
  take_packed(s, call.team.size(), 0, all, &experts);
  std::iota(experts, experts + s.experts, 0);
  std::sort(experts, experts + s.experts, [&](int64_t x, int64_t y) {
    const int64_t of_x = rows.filled(x), of_y = rows.filled(y);
    return of_x != of_y ? of_x > of_y : x < y;
  });
  std::atomic<int64_t> next{0};
  call.team.run([&](int thread) {
    Scratch scratch(call.workspace);
    const Packed memory = take_packed(s, call.team.size(), thread, scratch);
    int64_t i = 0, first = 0;  // an expert of the list and the index of its first part
    for (int64_t mine = next++; i < s.experts; mine = next++) {
      while (i < s.experts && mine >= first + parts(experts[i])) first += parts(experts[i++]);
      if (i < s.experts) f(experts[i], mine - first, memory);
    }
  });
}

// y[row] = a[row] * weight of the row's expert.
class RowProducts {
 public:
  RowProducts(const KernelCall& call, const Sizes& s)
      : call_(call),
        s_(s),
        a_(call.ins[GroupedIn::kA]),
        weight_(call.ins[GroupedIn::kB]),
        added_(call.ins[GroupedIn::kAdded]),
        y_(call.outs[0]),
        rows_(call, a_) {}

  void run() const {
    const int64_t strips = (s_.columns + kStrip - 1) / kStrip;
    // A wide weight is made for all columns.
    const bool fits = a_.dtype() == DType::f32 && y_.dtype() == DType::f32 && !s_.wide_weight;
    const auto is_direct = [&](int64_t expert) { return fits && rows_.has_long_runs(expert); };
    const auto parts = [&](int64_t expert) { return is_direct(expert) ? strips : rows_.blocks(expert); };
    for_parts(call_, s_, rows_, parts, [&](int64_t expert, int64_t part, const Packed& mine) {
      is_direct(expert) ? multiply_in_place(expert, part * kStrip, mine) : multiply_block(expert, part, mine);
    });
  }

 private:
  // The strip that begins at a column, of the weight of an expert, as operand b of p.
  void set_strip(Product& p, const float* weight, int64_t column, int64_t rows, float* copy) const {
    p.n = std::min(kStrip, s_.columns - column), p.k = s_.depth;
    if (s_.transposed) {
      p.b = weight + column * s_.depth, p.b_row = 1, p.b_column = s_.depth;
    } else if (rows <= kRowsWorthCopy) {
      p.b = weight + column, p.b_row = s_.columns, p.b_column = 1;
    } else {
      p.b = copy, p.b_row = p.n + kGap, p.b_column = 1;
      for (int64_t k = 0; k < s_.depth; ++k) std::copy_n(weight + k * s_.columns + column, p.n, copy + k * p.b_row);
    }
  }

  const float* weight_of(int64_t expert) const {
    return reinterpret_cast<const float*>(weight_.data) + expert * s_.depth * s_.columns;
  }
  const float* widened(int64_t expert, float* to) const {
    const Shape& shape = weight_.shape();
    const int64_t matrix = s_.depth * s_.columns, at = expert * matrix;
    if (weight_.dtype() == DType::i8) {
      const View& scale = call_.ins[GroupedIn::kScale];
      widen_codes(reinterpret_cast<const int8_t*>(weight_.data) + at,
                  reinterpret_cast<const float*>(scale.data) + expert * shape[2].size, shape[1].size, shape[2].size,
                  to);
    } else {
      widen(weight_.dtype(), weight_.data + at * tensor::size_of(weight_.dtype()), to, matrix);
    }
    return to;
  }

  void multiply_in_place(int64_t expert, int64_t column, const Packed& mine) const {
    Product p = {.a_row = s_.depth, .a_column = 1, .c_row = s_.columns};
    set_strip(p, weight_of(expert), column, rows_.filled(expert), mine.strip);
    for (int64_t b = 0; b < rows_.batch(); ++b) {
      const int64_t row = (b * rows_.experts() + expert) * rows_.slots();
      p.m = rows_.filled(b, expert);
      p.a = reinterpret_cast<const float*>(a_.data) + row * s_.depth;
      p.c = reinterpret_cast<float*>(y_.data) + row * s_.columns + column;
      p.accumulate = call_.accumulates(0) || added_.data;
      for (int64_t i = 0; i < p.m && added_.data; ++i)
        narrow(DType::f32, reinterpret_cast<const float*>(added_.data) + (row + i) * s_.columns + column,
               reinterpret_cast<std::byte*>(p.c + i * s_.columns), p.n, call_.accumulates(0));
      multiply(p);
    }
  }

  void multiply_block(int64_t expert, int64_t block, const Packed& mine) const {
    Product p = {.m = rows_.rows_of(expert, block), .a_row = s_.depth, .a_column = 1, .c_row = s_.columns};
    pack(rows_, expert, block, a_, mine.a, s_.depth);
    p.a = mine.a;
    const float* weight = s_.wide_weight ? widened(expert, mine.weight) : weight_of(expert);
    p.accumulate = added_.data;
    if (added_.data) pack(rows_, expert, block, added_, mine.y, s_.columns);
    for (int64_t column = 0; column < s_.columns; column += kStrip) {
      set_strip(p, weight, column, p.m, mine.strip);
      p.c = mine.y + column;
      multiply(p);
    }
    rows_.for_runs(expert, block, [&](int64_t row, int64_t at, int64_t n) {
      narrow(y_.dtype(), mine.y + at * s_.columns, y_.data + row * s_.columns * tensor::size_of(y_.dtype()),
             n * s_.columns, call_.accumulates(0));
    });
  }

  const KernelCall& call_;
  const Sizes& s_;
  const View &a_, &weight_, &added_, &y_;
  Rows rows_;
};

// y = the sum over an expert's rows of a[row] x b[row]. Threads divide the rows of y of an expert with many.
void multiply_weights(const KernelCall& call, const Sizes& s) {
  const View &a = call.ins[GroupedIn::kA], &b = call.ins[GroupedIn::kB], &added = call.ins[GroupedIn::kAdded],
             &y = call.outs[0];
  const Rows rows(call, a);
  int64_t all = 0;
  for (int64_t expert = 0; expert < rows.experts(); ++expert) all += rows.filled(expert);
  const int64_t wanted = 2 * call.team.size(), size = tensor::size_of(y.dtype());
  const auto parts = [&](int64_t expert) {
    return std::clamp<int64_t>(all == 0 ? 1 : (rows.filled(expert) * wanted + all - 1) / all, 1,
                               std::max<int64_t>(s.depth, 1));
  };
  for_parts(call, s, rows, parts, [&](int64_t expert, int64_t part, const Packed& mine) {
    const base::Range depth = base::share(s.depth, part, parts(expert));
    const int64_t from = (expert * s.depth + depth.begin) * s.columns, elements = depth.size() * s.columns;
    std::byte* to = y.data + from * size;
    float* sum = s.wide_weight ? mine.weight : reinterpret_cast<float*>(to);
    const int64_t blocks = rows.blocks(expert);
    bool add = !s.wide_weight && call.accumulates(0);
    if (added.data) {
      const std::byte* terms = added.data + from * size;
      if (s.wide_weight) {
        widen(added.dtype(), terms, sum, elements);
      } else {
        narrow(DType::f32, reinterpret_cast<const float*>(terms), to, elements, add);
      }
      add = true;
    }
    for (int64_t block = 0; block < blocks; ++block) {
      Product p = {.m = depth.size(), .n = s.columns, .k = rows.rows_of(expert, block)};
      pack(rows, expert, block, a, mine.a, s.depth + kGap);
      pack(rows, expert, block, b, mine.b, s.columns + kGap);
      p.a = mine.a + depth.begin, p.a_row = 1, p.a_column = s.depth + kGap;
      p.b = mine.b, p.b_row = s.columns + kGap, p.b_column = 1;
      p.c = sum, p.c_row = s.columns;
      p.accumulate = add;
      multiply(p);
      add = true;
    }
    if (!add) std::fill_n(sum, elements, 0.0f);
    if (s.wide_weight) narrow(y.dtype(), sum, to, elements, call.accumulates(0));
  });
}

// codes [expert rows columns], scale [expert columns]
bool scales_experts(const tensor::Type& codes, const tensor::Type& scale) {
  return codes.dtype == DType::i8 && scale.dtype == DType::f32 && is_weight(codes.shape) &&
         scale.shape == Shape{codes.shape[0], codes.shape[2]};
}

}  // namespace

bool grouped_takes(const Operands& o) {
  const tensor::Type &a = o.ins[GroupedIn::kA], &b = o.ins[GroupedIn::kB], &y = o.outs[0];
  const bool has_codes = o.ins.has(GroupedIn::kScale) && scales_experts(b, o.ins[GroupedIn::kScale]);
  if (!is_fast(a.dtype) || !(has_codes || is_fast(b.dtype)) || !is_fast(y.dtype) || !has_slot_rows(a.shape))
    return false;
  if (is_weight(y.shape))
    return has_slot_rows(b.shape) && y.shape[1].name == a.shape[3].name && y.shape[2].name == b.shape[3].name;
  const std::string &depth = a.shape[3].name, &columns = y.shape.dims().back().name;
  return has_slot_rows(y.shape) && is_weight(b.shape) &&
         ((b.shape[1].name == depth && b.shape[2].name == columns) ||
          (b.shape[1].name == columns && b.shape[2].name == depth));
}

int64_t grouped_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  take_packed(sizes_of({Types(shapes.ins), Types(shapes.outs), shapes.attributes}), shapes.threads, 0, scratch);
  return scratch.bytes();
}

void grouped(const KernelCall& call) {
  const Sizes sizes = sizes_of({Types(call.ins), Types(call.outs), call.attributes});
  sizes.of_weights ? multiply_weights(call, sizes) : RowProducts(call, sizes).run();
}

}  // namespace kintsugi::kernels::cpu
