// Kernels that only move positions of a dim: stacked parts, adjacent columns, concatenation, selection of positions,
// rows written to a cache.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/moves.h"
#include "kintsugi/kernels/halo.h"
#include "kintsugi/kernels/parts.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// The moves from a whole operand to a stacked one, for `stacks`, or back.
// whole: [above size below], stacked: [parts above length below]
std::vector<Move> moves_of(const KernelCall& call, const View& whole, const View& stacked, bool stacks) {
  const kernels::Parts s = kernels::parts_of(call, whole, stacked);
  std::vector<Move> moves;
  for (int64_t part = 0; part < s.parts; ++part) {
    int64_t place = part * s.above * s.length;
    for (const tensor::Segment& segment : kernels::part_index(call, part).segments()) {
      std::byte* in_stack = stacked.data + place * s.below;
      std::byte* in_whole = segment.global < 0 ? nullptr : whole.data + segment.global * s.below;
      place += segment.count;
      if (!stacks && in_whole == nullptr) continue;
      moves.push_back({.to = stacks ? in_stack : in_whole,
                       .from = stacks ? in_whole : in_stack,
                       .rows = s.above,
                       .bytes = segment.count * s.below,
                       .to_stride = (stacks ? s.length : s.size) * s.below,
                       .from_stride = in_whole == nullptr ? 0 : (stacks ? s.size : s.length) * s.below});
    }
  }
  return moves;
}

// A value with a dim `seq`, sizes in bytes: [above seq below].
struct Sequence {
  int64_t above, seq, below;
};
Sequence sequence_of(const View& x, std::string_view dim) {
  const auto axis = static_cast<size_t>(x.shape().find(dim));
  Sequence s{.above = 1, .seq = x.size(dim), .below = x.shape().stride(axis) * tensor::size_of(x.dtype())};
  for (size_t i = 0; i < axis; ++i) s.above *= x.shape()[i].size;
  return s;
}

// Local index of position 0 of the whole seq, or -1.
int64_t first_of(const KernelCall& call) {
  return runs_of(tensor::DimIndex(1), call.index("seq"))[0].b;
}

// For a text of which later->position tokens are in the cache.
FoundMove cache_move(const KernelCall& call) {
  const View &x = call.ins[1], &y = call.outs[0];
  const Sequence from = sequence_of(x, "seq"), to = sequence_of(y, "key_seq");
  return complete({.to = y.data,
                   .from = x.data,
                   .bytes = from.below,
                   .to_above = to.seq * to.below,
                   .from_above = from.seq * from.below,
                   .moved = local_index(call.index("seq")),
                   .other = local_index(call.index("key_seq"))},
                  from.above, from.seq);
}

// Columns of x from `begin` that form y; stored, or accumulated.
struct Columns {
  AnyData x, y;
  int64_t step = 0;            // row stride of x in elements
  int64_t begin = 0, end = 0;  // within a row of x
  bool add = false;
  int wide = 1;  // elements per piece
  int64_t pieces = 0;
  Divisor pieces_of_row = {};
};
struct ColumnsList {
  static constexpr size_t kMost = 24;
  Columns at[kMost];
};

// Rows of x and of `received` to add to rows of y, in index order.
struct HaloSums {
  AnyData x, received, y;
  LocalIndex targets;                              // [row of [x, received]]: the row of y, or -1
  int64_t above = 1, from = 0, to = 0, below = 0;  // rows of x and y; elements per row
};

__global__ void __launch_bounds__(kPieceThreads) add_halos(HaloSums h) {
  const int64_t elements = h.above * h.to * h.below;
  for (int64_t at = first_piece(); at < elements; at += all_threads()) {
    const int64_t i = at % h.below, row = at / h.below % h.to, a = at / h.below / h.to;
    float sum[1] = {0};
    for (int s = 0; s < h.targets.count; ++s) {
      const int64_t first = h.targets.global[s], begin = h.targets.begin[s], end = h.targets.begin[s + 1];
      if (first < 0 || row < first || row >= first + end - begin) continue;
      const int64_t source = begin + row - first;
      float some[1];
      if (source < h.from) {
        h.x.load(some, (a * h.from + source) * h.below + i);
      } else {
        h.received.load(some, ((source - h.from) * h.above + a) * h.below + i);
      }
      sum[0] += some[0];
    }
    h.y.put(at, sum, false);
  }
}

// Adds the move of `count` positions of the dim at `axis`, from position `from` of x to position `to` of y.
void move_along(std::vector<Move>& moves, size_t axis, const View& x, int64_t from, const View& y, int64_t to,
                int64_t count) {
  const int64_t below = x.shape().stride(axis) * tensor::size_of(x.dtype());
  int64_t above = 1;
  for (size_t i = 0; i < axis; ++i) above *= x.shape()[i].size;
  moves.push_back({.to = y.data + to * below,
                   .from = x.data + from * below,
                   .rows = above,
                   .bytes = count * below,
                   .to_stride = y.shape()[axis].size * below,
                   .from_stride = x.shape()[axis].size * below});
}
// The dim along which concatenate and slice work, by the first name of the attribute "whole".
size_t axis_of(const KernelCall& call) {
  return static_cast<size_t>(call.ins[0].shape().find(tensor::words(call.attributes.text("whole"))[0]));
}

constexpr int kColumnsWide = 4;  // 16 bytes of fp32

template <int N>
__device__ void split_pieces(const Columns& c) {
  for (int64_t p = first_piece(); p < c.pieces; p += all_threads()) {
    const int64_t row = c.pieces_of_row.quotient(p), at = p - row * c.pieces_of_row.by;
    float some[N];
    c.x.load(some, row * c.step + c.begin + at * N);
    c.y.put(p * N, some, c.add);
  }
}

// blockIdx.y selects the output.
__global__ void __launch_bounds__(kPieceThreads) split_all(ColumnsList list) {
  const Columns& c = list.at[blockIdx.y];
  c.wide == 1 ? split_pieces<1>(c) : split_pieces<kColumnsWide>(c);
}

}  // namespace

void stack(const KernelCall& call) {
  launch_moves(call, moves_of(call, call.ins[0], call.outs[0], true));
}
void unstack(const KernelCall& call) {
  launch_moves(call, moves_of(call, call.outs[0], call.ins[0], false));
}

void halo_pack(const KernelCall& call) {
  const View &x = call.ins[0], &packed = call.outs[0];
  const kernels::HaloRows s = kernels::halo_rows_of(call, x);
  const tensor::DimIndex& index = call.index(call.attributes.text("dim"));
  std::vector<Move> moves;
  for (int64_t row = 0; row < index.local(); ++row)
    moves.push_back({.to = packed.data + s.in_packed(row, 0),
                     .from = x.data + s.in_block(index[row], 0),
                     .rows = s.above,
                     .bytes = s.below,
                     .to_stride = s.below,
                     .from_stride = s.rows * s.below});
  launch_moves(call, moves);
}

void halo_place(const KernelCall& call) {
  const View &x = call.ins[0], &received = call.ins[1], &y = call.outs[0];
  const kernels::HaloRows from = kernels::halo_rows_of(call, x), to = kernels::halo_rows_of(call, y);
  const kernels::HaloPlaces places = kernels::halo_places_of(call, from);
  std::vector<Move> moves;
  int64_t row = 0;
  for (const tensor::Segment& s : call.index(call.attributes.text("dim")).segments()) {
    // Rows that are adjacent in x too; received ones are moved one by one.
    const bool own = s.global >= 0 && s.global < places.rows;
    const int64_t most = own ? places.rows - s.global : s.global < 0 ? s.count : 0;
    const int64_t together = std::min(s.count, most);
    if (together > 0 && places.own)
      moves.push_back({.to = y.data + to.in_block(row, 0),
                       .from = own ? x.data + from.in_block(s.global, 0) : nullptr,
                       .rows = to.above,
                       .bytes = together * to.below,
                       .to_stride = to.rows * to.below,
                       .from_stride = own ? from.rows * from.below : 0});
    for (int64_t i = together; i < s.count && places.received; ++i)
      moves.push_back({.to = y.data + to.in_block(row + i, 0),
                       .from = received.data + from.in_packed(s.global + i - places.rows, 0),
                       .rows = to.above,
                       .bytes = to.below,
                       .to_stride = to.rows * to.below,
                       .from_stride = to.below});
    row += s.count;
  }
  launch_moves(call, moves);
}

void halo_add(const KernelCall& call) {
  const View &x = call.ins[0], &received = call.ins[1], &y = call.outs[0];
  const kernels::HaloRows from = kernels::halo_rows_of(call, x), to = kernels::halo_rows_of(call, y);
  const HaloSums sums = {.x = any_data("halo_add", x),
                         .received = any_data("halo_add", received),
                         .y = any_data("halo_add", y),
                         .targets = local_index(call.index(call.attributes.text("dim"))),
                         .above = to.above,
                         .from = from.rows,
                         .to = to.rows,
                         .below = to.below / tensor::size_of(y.dtype())};
  launch_pieces(*call.stream, y.type.shape.elements(), add_halos, sums);
}

void concatenate(const KernelCall& call) {
  const size_t axis = axis_of(call);
  const View &a = call.ins[0], &b = call.ins[1], &y = call.outs[0];
  require_same_dtype("concatenate", a, y);
  require_same_dtype("concatenate", b, y);
  std::vector<Move> moves;
  move_along(moves, axis, a, 0, y, 0, a.shape()[axis].size);
  move_along(moves, axis, b, 0, y, a.shape()[axis].size, b.shape()[axis].size);
  launch_moves(call, moves);
}

void slice(const KernelCall& call) {
  const size_t axis = axis_of(call);
  const View &x = call.ins[0], &y = call.outs[0];
  require_same_dtype("slice", x, y);
  std::vector<Move> moves;
  move_along(moves, axis, x, call.attributes.integer("first"), y, 0, y.shape()[axis].size);
  launch_moves(call, moves);
}

// y: [above columns], each x: the same rows with fewer columns
void join_columns(const KernelCall& call) {
  const View& y = call.outs[0];
  const int64_t row = y.shape()[y.shape().rank() - 1].size * tensor::size_of(y.dtype()),
                above = row == 0 ? 0 : y.type.bytes() / row;
  std::vector<Move> moves;
  std::byte* to = y.data;
  for (const View& x : call.ins) {
    require_same_dtype("join_columns", x, y);
    const int64_t bytes = above == 0 ? 0 : x.type.bytes() / above;
    moves.push_back({.to = to, .from = x.data, .rows = above, .bytes = bytes, .to_stride = row, .from_stride = bytes});
    to += bytes;
  }
  launch_moves(call, moves);
}

// x: [above columns], each y: the same rows with fewer columns
void split_columns(const KernelCall& call) {
  const size_t parts = call.outs.size() / call.ins.size();
  base::require(call.outs.size() == parts * call.ins.size() && call.outs.size() <= ColumnsList::kMost, "kernel",
                "split_columns of {} values to {} on a device", call.ins.size(), call.outs.size());
  ColumnsList list;
  int64_t most = 0;
  for (size_t output = 0; output < call.outs.size(); ++output) {
    const View &x = call.ins[output / parts], &y = call.outs[output];
    Columns& c = list.at[output];
    const int64_t above = rows(x.shape()), columns = above == 0 ? 0 : y.elements() / above;
    const int64_t begin = output % parts == 0 ? 0 : list.at[output - 1].end;
    c = {.x = any_data("split_columns", x),
         .y = any_data("split_columns", y),
         .step = width(x.shape()),
         .begin = begin,
         .end = begin + columns,
         .add = call.accumulates(output)};
    if (all_wide(x.data, y.data) && c.step % kColumnsWide == 0 && begin % kColumnsWide == 0 &&
        columns % kColumnsWide == 0)
      c.wide = kColumnsWide;
    c.pieces = above * columns / c.wide;
    c.pieces_of_row = Divisor(std::max<int64_t>(columns / c.wide, 1));
    most = std::max(most, c.pieces);
  }
  dim3 blocks = blocks_of_pieces(most, split_all);
  blocks.y = static_cast<unsigned>(call.outs.size());
  if (most > 0) launch(*call.stream, blocks, dim3(kPieceThreads), 0, split_all, list);
}

// x: [batch seq embed], y: [batch embed]
void take(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  require_same_dtype("take", x, y);
  const Sequence s = sequence_of(x, "seq");
  launch_moves(call, {{.to = y.data,
                       .from = x.data,
                       .rows = s.above,
                       .bytes = s.below,
                       .to_stride = s.below,
                       .from_stride = s.seq * s.below,
                       .last_stride = s.below}});
}

// cache, y: [batch key_seq kv_heads head_dim], x: [batch seq kv_heads head_dim]
void cache_write(const KernelCall& call) {
  const View &cache = call.ins[0], &x = call.ins[1], &y = call.outs[0];
  require_same_dtype("cache_write", cache, y);
  require_same_dtype("cache_write", x, y);
  const Sequence from = sequence_of(x, "seq"), to = sequence_of(y, "key_seq");
  if (y.data != cache.data)
    launch_moves(call, {{.to = y.data, .from = cache.data, .rows = 1, .bytes = y.type.bytes()}});
  if (call.moves("seq")) {
    const FoundMove move = cache_move(call);
    return launch_found({&call, 1}, {&move, 1});
  }
  std::vector<Move> moves;
  for (const Run& run : runs_of(call.index("seq"), call.index("key_seq"))) {
    if (run.b < 0) continue;
    moves.push_back({.to = y.data + run.b * to.below,
                     .from = x.data + run.a * from.below,
                     .rows = from.above,
                     .bytes = run.count * from.below,
                     .to_stride = to.seq * to.below,
                     .from_stride = from.seq * from.below});
  }
  launch_moves(call, moves);
}

// Fuses the writes of keys and values.
bool cache_write_together(std::span<const KernelCall> calls) {
  std::vector<FoundMove> moves;
  const auto finds = [](const KernelCall& call) {
    return call.moves("seq") && call.outs[0].data == call.ins[0].data && call.ins[0].dtype() == call.outs[0].dtype() &&
           call.ins[1].dtype() == call.outs[0].dtype();
  };
  if (calls.size() > FoundMoves::kMost || !std::all_of(calls.begin(), calls.end(), finds)) return false;
  for (const KernelCall& call : calls) moves.push_back(cache_move(call));
  launch_found(calls, moves);
  return true;
}

// x: [batch seq embed], y: [batch embed]
void first(const KernelCall& call) {
  const View &x = call.ins[0], &y = call.outs[0];
  require_same_dtype("first", x, y);
  const Sequence s = sequence_of(x, "seq");
  const int64_t at = first_of(call);
  launch_moves(call, {{.to = y.data,
                       .from = at < 0 ? nullptr : x.data + at * s.below,
                       .rows = s.above,
                       .bytes = s.below,
                       .to_stride = s.below,
                       .from_stride = at < 0 ? 0 : s.seq * s.below}});
}

// dy: [batch embed], dx: [batch seq embed]
void first_grad(const KernelCall& call) {
  const View &dy = call.ins[0], &dx = call.outs[0];
  require_same_dtype("first_grad", dy, dx);
  const Sequence s = sequence_of(dx, "seq");
  const int64_t at = first_of(call), line = s.seq * s.below, before = at < 0 ? s.seq : at;
  std::vector<Move> moves = {
      {.to = dx.data, .from = nullptr, .rows = s.above, .bytes = before * s.below, .to_stride = line}};
  if (at >= 0) {
    moves.push_back({.to = dx.data + at * s.below,
                     .from = dy.data,
                     .rows = s.above,
                     .bytes = s.below,
                     .to_stride = line,
                     .from_stride = s.below});
    moves.push_back({.to = dx.data + (at + 1) * s.below,
                     .from = nullptr,
                     .rows = s.above,
                     .bytes = (s.seq - at - 1) * s.below,
                     .to_stride = line});
  }
  launch_moves(call, moves);
}

}  // namespace kintsugi::KINTSUGI_GPU
