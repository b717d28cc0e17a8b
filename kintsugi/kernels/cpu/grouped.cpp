// Grouped matmuls of all experts over the filled slots. The filled slots of an expert are its rows, sample by sample;
// blocks of them are packed, so that samples with few tokens share a matmul. Threads take blocks dynamically. a: [batch
// expert slot depth], weight: [expert depth columns] or [expert columns depth], y: [batch expert slot columns], or for
// a weight gradient the sum over all rows of a[row] x b[row].
#include <algorithm>
#include <atomic>
#include <cstring>

#include "kintsugi/kernels/cpu/convert.h"
#include "kintsugi/kernels/cpu/experts.h"
#include "kintsugi/kernels/cpu/gemm.h"

namespace kintsugi::kernels::cpu {
namespace {

using tensor::DType;
using tensor::Shape;
using tensor::View;

constexpr int64_t kBlockRows = 512;

bool has_rows(const Shape& shape) {
  return shape.rank() == 4 && shape[0].name == "batch" && shape[1].name == "expert" && shape[2].name == "slot";
}
bool is_weight(const Shape& shape) {
  return shape.rank() == 3 && shape[0].name == "expert";
}

// The rows of a block of one expert, in packed order.
class Rows {
 public:
  Rows(const KernelCall& call, const View& of)
      : counts_(reinterpret_cast<const int32_t*>(call.ins[GroupedIn::kCounts].data)),
        batch_(of.shape()[0].size),
        experts_(of.shape()[1].size),
        slots_(of.shape()[2].size) {
    // Filled slots come first in the whole, and also in this block unless slots are split.
    const tensor::DimIndex& index = call.index("slot");
    const tensor::Segment first = index.segments().empty() ? tensor::Segment{-1, 0} : index.segments()[0];
    base::require(index.segments().size() <= 1 || index.segments()[1].global < 0, "grouped",
                  "slots are not cut contiguously");
    begin_ = first.global < 0 ? INT64_MAX : first.global;
    length_ = first.global < 0 ? 0 : first.count;
  }

  int64_t batch() const { return batch_; }
  int64_t experts() const { return experts_; }
  int64_t slots() const { return slots_; }
  // Filled slots of an expert for one sample.
  int64_t filled(int64_t sample, int64_t expert) const {
    const int64_t count = counts_[sample * experts_ + expert];
    return count <= begin_ ? 0 : std::min(count - begin_, length_);
  }
  int64_t filled(int64_t expert) const {
    int64_t sum = 0;
    for (int64_t b = 0; b < batch_; ++b) sum += filled(b, expert);
    return sum;
  }
  int64_t blocks(int64_t expert) const { return (filled(expert) + kBlockRows - 1) / kBlockRows; }

  // Calls f(row of the operand, row of the block, rows) for the runs of a block.
  template <typename F>
  void for_runs(int64_t expert, int64_t block, const F& f) const {
    const int64_t begin = block * kBlockRows, end = begin + kBlockRows;
    for (int64_t b = 0, at = 0; b < batch_ && at < end; ++b) {
      const int64_t n = filled(b, expert), from = std::max(begin, at), to = std::min(end, at + n);
      if (from < to) f((b * experts_ + expert) * slots_ + from - at, from - begin, to - from);
      at += n;
    }
  }
  int64_t rows_of(int64_t expert, int64_t block) const {
    return std::min(kBlockRows, filled(expert) - block * kBlockRows);
  }

 private:
  const int32_t* counts_;
  int64_t batch_, experts_, slots_, begin_ = 0, length_ = 0;
};

// Packing memory of one thread.
struct Packed {
  float *a = nullptr, *b = nullptr, *y = nullptr, *weight = nullptr;
};

struct Sizes {
  int64_t rows = 0;  // per block, at most
  int64_t depth = 0, columns = 0;
  bool wide_weight = false;  // an fp32 copy
  bool of_weights = false;   // y is the gradient of a weight
};

Sizes sizes_of(const Operands& o) {
  const Shape &a = o.ins[GroupedIn::kA].shape, &y = o.outs[0].shape;
  Sizes s;
  s.rows = std::min(kBlockRows, a[0].size * a[2].size);
  s.of_weights = is_weight(y);
  s.depth = a[3].size;
  s.columns = s.of_weights ? o.ins[GroupedIn::kB].shape[3].size : y[3].size;
  s.wide_weight = s.of_weights ? o.outs[0].dtype != DType::f32 : o.ins[GroupedIn::kB].dtype != DType::f32;
  return s;
}

Packed take_packed(const Sizes& s, int threads, int thread, Scratch& scratch) {
  Packed mine;
  for (int t = 0; t < threads; ++t) {
    Packed p = {.a = scratch.take<float>(s.rows * s.depth)};
    (s.of_weights ? p.b : p.y) = scratch.take<float>(s.rows * s.columns);
    if (s.wide_weight) p.weight = scratch.take<float>(s.depth * s.columns);
    if (t == thread) mine = p;
  }
  return mine;
}

void pack(const Rows& rows, int64_t expert, int64_t block, const View& from, float* to) {
  const int64_t width = from.shape()[3].size, size = tensor::size_of(from.dtype());
  rows.for_runs(expert, block, [&](int64_t row, int64_t at, int64_t n) {
    widen(from.dtype(), from.data + row * width * size, to + at * width, n * width);
  });
}

// Uses rows in place if the block is a single fp32 run; otherwise packs them.
const float* rows_of(const Rows& rows, int64_t expert, int64_t block, const View& from, float* packed) {
  int64_t runs = 0, first = 0;
  rows.for_runs(expert, block, [&](int64_t row, int64_t, int64_t) {
    if (runs++ == 0) first = row;
  });
  if (runs == 1 && from.dtype() == DType::f32)
    return reinterpret_cast<const float*>(from.data) + first * from.shape()[3].size;
  pack(rows, expert, block, from, packed);
  return packed;
}

// Calls f(expert, part, thread) for `parts(expert)` parts of each expert, on all threads.
template <typename Parts, typename F>
void for_parts(int64_t experts, base::ThreadTeam& team, const Parts& parts, const F& f) {
  std::atomic<int64_t> next{0};
  team.run([&](int thread) {
    int64_t expert = 0, first = 0;  // the index of the expert's first part
    for (int64_t mine = next++; expert < experts; mine = next++) {
      while (expert < experts && mine >= first + parts(expert)) first += parts(expert++);
      if (expert < experts) f(expert, mine - first, thread);
    }
  });
}

void clear_rest(const Rows& rows, const View& y, base::ThreadTeam& team) {
  const int64_t bytes = y.shape()[3].size * tensor::size_of(y.dtype());
  team.for_shares(rows.batch() * rows.experts(), 1, [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i) {
      const int64_t filled = rows.filled(i / rows.experts(), i % rows.experts());
      std::memset(y.data + (i * rows.slots() + filled) * bytes, 0,
                  static_cast<size_t>((rows.slots() - filled) * bytes));
    }
  });
}

// y[row] = a[row] * weight of the row's expert.
void multiply_rows(const KernelCall& call, const Sizes& s) {
  const View &a = call.ins[GroupedIn::kA], &weight = call.ins[GroupedIn::kB], &y = call.outs[0];
  const Rows rows(call, a);
  const bool transposed = weight.shape()[1].name == y.shape()[3].name && s.depth != 0;
  const int64_t size = tensor::size_of(y.dtype()), matrix = s.depth * s.columns;
  if (!call.accumulates(0)) clear_rest(rows, y, call.team);
  const auto blocks = [&](int64_t expert) { return rows.blocks(expert); };
  for_parts(rows.experts(), call.team, blocks, [&](int64_t expert, int64_t block, int thread) {
    Scratch scratch(call.workspace);
    const Packed mine = take_packed(s, call.team.size(), thread, scratch);
    Product p = {.m = rows.rows_of(expert, block), .n = s.columns, .k = s.depth};
    p.a = rows_of(rows, expert, block, a, mine.a);
    p.a_row = s.depth, p.a_column = 1;
    p.b = reinterpret_cast<const float*>(weight.data) + expert * matrix;
    if (s.wide_weight) {
      const int64_t at = expert * matrix, columns = weight.shape()[2].size;
      if (weight.dtype() == DType::i8) {
        const View& scale = call.ins[GroupedIn::kScale];
        widen_codes(reinterpret_cast<const int8_t*>(weight.data) + at,
                    reinterpret_cast<const float*>(scale.data) + expert * columns, weight.shape()[1].size, columns,
                    mine.weight);
      } else {
        widen(weight.dtype(), weight.data + at * tensor::size_of(weight.dtype()), mine.weight, matrix);
      }
      p.b = mine.weight;
    }
    p.b_row = transposed ? 1 : s.columns, p.b_column = transposed ? s.depth : 1;
    p.c = mine.y, p.c_row = s.columns;
    multiply(p);
    rows.for_runs(expert, block, [&](int64_t row, int64_t at, int64_t n) {
      narrow(y.dtype(), mine.y + at * s.columns, y.data + row * s.columns * size, n * s.columns, call.accumulates(0));
    });
  });
}

// y = the sum over an expert's rows of a[row] x b[row]; the threads divide the rows of y.
void multiply_weights(const KernelCall& call, const Sizes& s) {
  const View &a = call.ins[GroupedIn::kA], &b = call.ins[GroupedIn::kB], &y = call.outs[0];
  const Rows rows(call, a);
  const int64_t parts = std::min<int64_t>(
      s.depth, rows.experts() >= 4 * call.team.size() ? 1 : (4 * call.team.size() - 1) / rows.experts() + 1);
  const int64_t size = tensor::size_of(y.dtype());
  const auto of_each = [&](int64_t) { return parts; };
  for_parts(rows.experts(), call.team, of_each, [&](int64_t expert, int64_t part, int thread) {
    Scratch scratch(call.workspace);
    const Packed mine = take_packed(s, call.team.size(), thread, scratch);
    const base::Range depth = base::share(s.depth, part, parts);
    std::byte* to = y.data + (expert * s.depth + depth.begin) * s.columns * size;
    const int64_t elements = depth.size() * s.columns;
    float* sum = s.wide_weight ? mine.weight : reinterpret_cast<float*>(to);
    const int64_t blocks = rows.blocks(expert);
    bool add = !s.wide_weight && call.accumulates(0);
    for (int64_t block = 0; block < blocks; ++block) {
      Product p = {.m = depth.size(), .n = s.columns, .k = rows.rows_of(expert, block)};
      p.a = rows_of(rows, expert, block, a, mine.a) + depth.begin;
      p.a_row = 1, p.a_column = s.depth;
      p.b = rows_of(rows, expert, block, b, mine.b);
      p.b_row = s.columns, p.b_column = 1;
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
  if (!is_fast(a.dtype) || !(has_codes || is_fast(b.dtype)) || !is_fast(y.dtype) || !has_rows(a.shape)) return false;
  if (is_weight(y.shape))
    return has_rows(b.shape) && y.shape[1].name == a.shape[3].name && y.shape[2].name == b.shape[3].name;
  const std::string &depth = a.shape[3].name, &columns = y.shape.dims().back().name;
  return has_rows(y.shape) && is_weight(b.shape) &&
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
  sizes.of_weights ? multiply_weights(call, sizes) : multiply_rows(call, sizes);
}

}  // namespace kintsugi::kernels::cpu
