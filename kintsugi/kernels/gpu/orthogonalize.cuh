// Newton-Schulz iteration of Muon in fp32, for all matrices of the operand at once: per step two products that give the
// polynomial of the smaller Gram matrix, and one that applies it. Squares are summed in pieces that depend only on the
// shapes.
#include "kintsugi/kernels/gpu/common.cuh"
#include "kintsugi/kernels/gpu/gemm.h"
#include "kintsugi/kernels/optimizer_operands.h"

namespace kintsugi::KINTSUGI_GPU {

namespace {

using kernels::MatrixSizes;

constexpr int kThreads = 256;
constexpr int64_t kSquaredPiece = 16384;  // elements

// x: pieces of a matrix, y: matrices. sums: [matrix piece]
__global__ void __launch_bounds__(kThreads) square_matrices(const float* u, int64_t each, double* sums) {
  __shared__ double scratch[32];
  const float* const x = u + static_cast<int64_t>(blockIdx.y) * each;
  const int64_t begin = static_cast<int64_t>(blockIdx.x) * kSquaredPiece;
  const int64_t end = begin + kSquaredPiece < each ? begin + kSquaredPiece : each;
  double sum = 0;
  for (int64_t i = begin + threadIdx.x; i < end; i += kThreads)
    sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  sum = block_sum(sum, scratch);
  if (threadIdx.x == 0) sums[static_cast<int64_t>(blockIdx.y) * gridDim.x + blockIdx.x] = sum;
}

// One block per matrix: 1 / its norm.
__global__ void __launch_bounds__(kThreads) invert_norms(const double* sums, int64_t pieces, float* by) {
  __shared__ double scratch[32];
  constexpr double kEpsilon = 1e-7;
  double sum = 0;
  for (int64_t i = threadIdx.x; i < pieces; i += kThreads) sum += sums[blockIdx.x * pieces + i];
  sum = block_sum(sum, scratch);
  const double norm = sqrt(sum);
  if (threadIdx.x == 0) by[blockIdx.x] = static_cast<float>(1 / (norm > kEpsilon ? norm : kEpsilon));
}

// x: pieces of a matrix, y: matrices.
__global__ void __launch_bounds__(kPieceThreads)
    scale_matrices(const float* u, int64_t each, const float* by, float* x) {
  const int64_t begin = static_cast<int64_t>(blockIdx.y) * each;
  const float factor = by[blockIdx.y];
  for (int64_t i = first_piece(); i < each; i += all_threads()) x[begin + i] = factor * u[begin + i];
}

// square = scale * (a I + b gram + c square), per matrix. gram, square: [matrix n n]
struct Polynomial {
  float a, b, c, scale;
};
__global__ void __launch_bounds__(kPieceThreads)
    polynomial_of_gram(const float* gram, float* square, int64_t n, int64_t count, Polynomial p) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const int64_t at = i % (n * n);
    const float identity = at / n == at % n ? p.a : 0;
    square[i] = p.scale * (identity + p.b * gram[i] + p.c * square[i]);
  }
}

struct OrthogonalizeSizes {
  MatrixSizes m;
  int64_t least, most, each, all, squares, pieces;
};
OrthogonalizeSizes sizes_of(const tensor::Shape& shape, const tensor::Attributes& attributes) {
  OrthogonalizeSizes s = {};
  s.m = kernels::matrix_sizes(shape, attributes);
  s.least = std::min(s.m.rows, s.m.columns), s.most = std::max(s.m.rows, s.m.columns);
  s.each = s.m.rows * s.m.columns, s.all = s.m.count * s.each;
  s.squares = s.m.count * s.least * s.least;
  s.pieces = quotient_up(s.each, kSquaredPiece);
  return s;
}

struct OrthogonalizeMemory {
  float *x, *gram, *square, *by;
  double* sums;
  std::byte* products;
  int64_t product_bytes, bytes;
};
OrthogonalizeMemory memory_of(const OrthogonalizeSizes& s, std::byte* workspace) {
  OrthogonalizeMemory m = {};
  const auto take = [&](int64_t bytes) {
    std::byte* const at = workspace + m.bytes;
    m.bytes += quotient_up(bytes, 256) * 256;
    return at;
  };
  const auto floats = [&](int64_t count) { return reinterpret_cast<float*>(take(count * 4)); };
  m.x = floats(s.all), m.gram = floats(s.squares), m.square = floats(s.squares), m.by = floats(s.m.count);
  m.sums = reinterpret_cast<double*>(take(s.m.count * s.pieces * 8));
  m.product_bytes = gemm_workspace(std::max(s.all, s.squares));
  m.products = take(m.product_bytes);
  return m;
}

// c = a b for each matrix, with strides in elements between matrices.
struct MatrixProduct {
  int64_t rows, columns, depth;
  GemmOperand a, b;
  float* c;
  int64_t a_each, b_each, c_each;
};
void multiply(const KernelCall& call, const OrthogonalizeSizes& s, const OrthogonalizeMemory& memory,
              const MatrixProduct& p) {
  Gemm g;
  g.m = p.rows, g.n = p.columns, g.k = p.depth;
  g.tf32 = call.tf32;
  g.a = p.a, g.b = p.b;
  g.c = p.c, g.c_step = p.columns;
  g.epilogue = {.x = p.c, .y = p.c};
  if (s.m.count > 1) g.batch[0] = {s.m.count, p.a_each, p.b_each, p.c_each, 0}, g.num_batch = 1;
  g.workspace = memory.products;
  g.workspace_bytes = std::min(memory.product_bytes, gemm_workspace(s.m.count * p.c_each));
  gemm(g, *call.stream);
}

// to = polynomial(Gram matrix of x) x, times `scale`. x, to: [matrix rows columns]
void newton_schulz_step(const KernelCall& call, const OrthogonalizeSizes& s, const OrthogonalizeMemory& memory,
                        const float* x, float* to, float scale) {
  const bool by_rows = s.m.rows <= s.m.columns;
  const int64_t square = s.least * s.least, n = s.least;
  const GemmOperand plain = {x, s.m.columns, false}, transposed = {x, s.m.columns, true};
  multiply(call, s, memory,
           {.rows = n,
            .columns = n,
            .depth = s.most,
            .a = by_rows ? plain : transposed,
            .b = by_rows ? transposed : plain,
            .c = memory.gram,
            .a_each = s.each,
            .b_each = s.each,
            .c_each = square});
  multiply(call, s, memory,
           {.rows = n,
            .columns = n,
            .depth = n,
            .a = {memory.gram, n, false},
            .b = {memory.gram, n, false},
            .c = memory.square,
            .a_each = square,
            .b_each = square,
            .c_each = square});
  const auto& k = kernels::kNewtonSchulz;
  const Polynomial p = {
      .a = static_cast<float>(k[0]), .b = static_cast<float>(k[1]), .c = static_cast<float>(k[2]), .scale = scale};
  launch_pieces(*call.stream, s.squares, polynomial_of_gram, memory.gram, memory.square, n, s.squares, p);
  const GemmOperand factor = {memory.square, n, false};
  multiply(call, s, memory,
           {.rows = s.m.rows,
            .columns = s.m.columns,
            .depth = n,
            .a = by_rows ? factor : plain,
            .b = by_rows ? plain : factor,
            .c = to,
            .a_each = by_rows ? square : s.each,
            .b_each = by_rows ? s.each : square,
            .c_each = s.each});
}

}  // namespace

int64_t orthogonalize_workspace(const KernelShapes& shapes) {
  return memory_of(sizes_of(shapes.ins[0]->shape, shapes.attributes), nullptr).bytes;
}

void orthogonalize(const KernelCall& call) {
  const View &u = call.ins[0], &y = call.outs[0];
  base::require(u.dtype() == DType::f32 && y.dtype() == DType::f32, "kernel", "orthogonalize of {} on a device",
                name_of(u.dtype()));
  const OrthogonalizeSizes s = sizes_of(u.shape(), call.attributes);
  if (s.all == 0) return;
  constexpr int64_t kMostMatrices = 65535;  // of a grid
  base::require(s.m.count <= kMostMatrices, "kernel", "orthogonalize of {} matrices on a device", s.m.count);
  const OrthogonalizeMemory memory = memory_of(s, call.workspace.data());
  const auto matrices = static_cast<unsigned>(s.m.count), pieces = static_cast<unsigned>(s.pieces);
  launch(*call.stream, dim3(pieces, matrices), dim3(kThreads), 0, square_matrices, data<float>(u), s.each, memory.sums);
  launch(*call.stream, dim3(matrices), dim3(kThreads), 0, invert_norms, memory.sums, s.pieces, memory.by);
  const unsigned blocks = blocks_of_pieces(s.each, scale_matrices).x;
  launch(*call.stream, dim3(blocks, matrices), dim3(kPieceThreads), 0, scale_matrices, data<float>(u), s.each,
         memory.by, memory.x);
  // From the workspace to y and back, an odd number of times.
  static_assert(kernels::kNewtonSchulzSteps % 2 == 1);
  float *from = memory.x, *to = data<float>(y);
  for (int step = 1; step <= kernels::kNewtonSchulzSteps; ++step, std::swap(from, to)) {
    const double scale = step < kernels::kNewtonSchulzSteps ? 1.0 : kernels::muon_scale(s.m, call.attributes);
    newton_schulz_step(call, s, memory, from, to, static_cast<float>(scale));
  }
}

}  // namespace kintsugi::KINTSUGI_GPU
