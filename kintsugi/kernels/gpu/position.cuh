// Learned positions: rows of a table, and their gradient.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/moves.h"

namespace kintsugi::KINTSUGI_GPU {
namespace {

// dtable: [position embed], dy: [seq embed]
template <typename T, typename G>
struct PositionGrad {
  const T* dy;
  G* dtable;
  int64_t pieces;  // of N elements, of dtable
  Divisor in_row;  // pieces per row
  LocalIndex position, seq;
  bool add;
};

// Each row of the table sums the rows of dy at its position in order, if any; pieces of N elements.
template <typename T, typename G, int N>
__global__ void __launch_bounds__(kPieceThreads) gather_rows(PositionGrad<T, G> s) {
  for (int64_t p = first_piece(); p < s.pieces; p += all_threads()) {
    const int64_t row = s.in_row.quotient(p), piece = p - row * s.in_row.by, wanted = s.position[row];
    float sum[N] = {};
    bool any = false;
    for (int i = 0; i < s.seq.count; ++i) {
      const int64_t begin = s.seq.global[i], length = s.seq.begin[i + 1] - s.seq.begin[i];
      if (wanted < 0 || begin < 0 || wanted < begin || wanted >= begin + length) continue;
      any = true;
      const auto some =
          *reinterpret_cast<const Vec<T, N>*>(s.dy + ((s.seq.begin[i] + wanted - begin) * s.in_row.by + piece) * N);
      GPU_UNROLL
      for (int k = 0; k < N; ++k) sum[k] += widen(some[k]);
    }
    if (!any && s.add) continue;
    Vec<G, N> out = {};
    if (s.add) out = *reinterpret_cast<const Vec<G, N>*>(s.dtable + p * N);
    GPU_UNROLL
    for (int k = 0; k < N; ++k) put(&out[k], sum[k], s.add);
    *reinterpret_cast<Vec<G, N>*>(s.dtable + p * N) = out;
  }
}

}  // namespace

// table: [position embed], y: [seq embed]
void position(const KernelCall& call) {
  const View &table = call.ins[0], &y = call.outs[0];
  require_same_dtype("position", table, y);
  const int64_t bytes = table.size("embed") * tensor::size_of(table.dtype());
  if (call.moves("seq")) {
    const FoundMove move = complete({.to = y.data,
                                     .from = table.data,
                                     .bytes = bytes,
                                     .moved = local_index(call.index("seq")),
                                     .other = local_index(call.index("position")),
                                     .gathers = true},
                                    1, y.size("seq"));
    return launch_found({&call, 1}, {&move, 1});
  }
  std::vector<Move> moves;
  for (const Run& run : runs_of(call.index("seq"), call.index("position")))
    moves.push_back({.to = y.data + run.a * bytes,
                     .from = run.b < 0 ? nullptr : table.data + run.b * bytes,
                     .rows = 1,
                     .bytes = run.count * bytes});
  launch_moves(call, moves);
}

// dy: [seq embed], dtable: [position embed]
void position_grad(const KernelCall& call) {
  const View &dy = call.ins[0], &dtable = call.outs[0];
  if (dtable.elements() == 0) return;
  const int64_t embed = dtable.size("embed");
  dispatch("position_grad", dy.dtype(), [&]<typename T>(T) {
    dispatch("position_grad", dtable.dtype(), [&]<typename G>(G) {
      constexpr int kN = std::min(kWide<T>, kWide<G>);
      PositionGrad<T, G> s{.dy = data<T>(dy),
                           .dtable = data<G>(dtable),
                           .pieces = 0,
                           .in_row = {},
                           .position = local_index(call.index("position")),
                           .seq = local_index(call.index("seq")),
                           .add = call.accumulates(0)};
      const bool wide = embed % kN == 0 && all_wide(s.dy, s.dtable);
      const int64_t n = wide ? kN : 1;
      s.pieces = dtable.elements() / n;
      s.in_row = Divisor(embed / n);
      launch_pieces(*call.stream, s.pieces, wide ? gather_rows<T, G, kN> : gather_rows<T, G, 1>, s);
    });
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
