// Newton-Schulz iteration of Muon in fp32; all threads share each product.
#include <cmath>

#include "kintsugi/kernels/cpu/gemm.h"
#include "kintsugi/kernels/cpu/optimizers.h"

namespace kintsugi::kernels::cpu {
namespace {

struct NewtonSchulzMemory {
  float *x, *next, *gram, *square;
};

NewtonSchulzMemory newton_schulz_memory(const MatrixSizes& m, Scratch& scratch) {
  const int64_t all = m.rows * m.columns, least = std::min(m.rows, m.columns);
  NewtonSchulzMemory memory = {};
  memory.x = scratch.take<float>(all);
  memory.next = scratch.take<float>(all);
  memory.gram = scratch.take<float>(least * least);
  memory.square = scratch.take<float>(least * least);
  return memory;
}

void multiply_by_all(base::ThreadTeam& team, const Product& product) {
  team.run([&](int thread) { multiply_share(product, thread, team.size()); });
}

// x: [rows columns]. The smaller Gram matrix: x x' if there are fewer rows, else x' x.
void newton_schulz_step(base::ThreadTeam& team, const MatrixSizes& m, const NewtonSchulzMemory& at) {
  const bool by_rows = m.rows <= m.columns;
  const int64_t least = by_rows ? m.rows : m.columns, most = by_rows ? m.columns : m.rows, all = m.rows * m.columns;
  const auto [a, b, c] = kNewtonSchulz;
  const int64_t own = by_rows ? m.columns : 1, other = by_rows ? 1 : m.columns;  // strides of x along least and most
  multiply_by_all(team, {.m = least,
                         .n = least,
                         .k = most,
                         .a = at.x,
                         .a_row = own,
                         .a_column = other,
                         .b = at.x,
                         .b_row = other,
                         .b_column = own,
                         .c = at.gram,
                         .c_row = least});
  multiply_by_all(team, {.m = least,
                         .n = least,
                         .k = least,
                         .a = at.gram,
                         .a_row = least,
                         .a_column = 1,
                         .b = at.gram,
                         .b_row = least,
                         .b_column = 1,
                         .c = at.square,
                         .c_row = least});
  const auto fa = static_cast<float>(a), fb = static_cast<float>(b), fc = static_cast<float>(c);
  team.for_shares(least * least, 4096, [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i) at.square[i] = fb * at.gram[i] + fc * at.square[i];
  });
  team.for_shares(all, 4096, [&](base::Range r, int) {
    for (int64_t i = r.begin; i < r.end; ++i) at.next[i] = fa * at.x[i];
  });
  Product last = {.m = m.rows, .n = m.columns, .k = least, .c = at.next, .c_row = m.columns, .accumulate = true};
  last.a = by_rows ? at.square : at.x;
  last.a_row = by_rows ? least : m.columns;
  last.b = by_rows ? at.x : at.square;
  last.b_row = by_rows ? m.columns : least;
  last.a_column = last.b_column = 1;
  multiply_by_all(team, last);
}

}  // namespace

bool orthogonalize_takes(const Operands& o) {
  return o.ins[0].dtype == tensor::DType::f32;
}

int64_t orthogonalize_workspace(const KernelShapes& shapes) {
  Scratch scratch;
  newton_schulz_memory(matrix_sizes(shapes.ins[0]->shape, shapes.attributes), scratch);
  return scratch.bytes();
}

void orthogonalize(const KernelCall& call) {
  constexpr double kEpsilon = 1e-7;
  const MatrixSizes m = matrix_sizes(call.ins[0].shape(), call.attributes);
  const int64_t all = m.rows * m.columns;
  const auto scale = static_cast<float>(muon_scale(m, call.attributes));
  Scratch scratch(call.workspace);
  NewtonSchulzMemory at = newton_schulz_memory(m, scratch);
  for (int64_t matrix = 0; matrix < m.count; ++matrix) {
    const float* in = reinterpret_cast<const float*>(call.ins[0].data) + matrix * all;
    float* out = reinterpret_cast<float*>(call.outs[0].data) + matrix * all;
    double squares = 0;
    for (int64_t i = 0; i < all; ++i) squares += static_cast<double>(in[i]) * static_cast<double>(in[i]);
    const auto by = static_cast<float>(1 / std::max(std::sqrt(squares), kEpsilon));
    for (int64_t i = 0; i < all; ++i) at.x[i] = by * in[i];
    for (int step = 0; step < kNewtonSchulzSteps; ++step) {
      newton_schulz_step(call.team, m, at);
      std::swap(at.x, at.next);
    }
    for (int64_t i = 0; i < all; ++i) out[i] = scale * at.x[i];
  }
}

}  // namespace kintsugi::kernels::cpu
