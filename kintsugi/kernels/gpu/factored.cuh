// Adafactor's factored second moments (Shazeer, Stern 2018, algorithm 4): sums of squares over the columns and the rows
// of matrices, and the direction of the update. Sums are cut in a way that depends only on the shapes.
#include "kintsugi/kernels/gpu/strides.h"
#include "kintsugi/kernels/optimizer_operands.h"

namespace kintsugi::KINTSUGI_GPU {

namespace {

using kernels::FactoredDirectionIn;
using kernels::MatrixSizes;

constexpr int kThreads = 256;
constexpr int64_t kChunk = 512;  // rows whose squares one block adds up
constexpr int kRowsAtOnce = kThreads / 32;

__device__ __forceinline__ float element_of(const AnyData& x, int64_t at) {
  float one[1];
  x.load(one, at);
  return one[0];
}

// 32 lanes per row. g: [rows columns], rows of all matrices
__global__ void __launch_bounds__(kThreads)
    square_rows(AnyData g, const double* factor, int64_t rows, int64_t columns, float* sums) {
  const int64_t row = first_piece() / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  double sum = 0;
  if (row < rows)
    for (int64_t j = lane; j < columns; j += 32) {
      const auto x = static_cast<double>(element_of(g, row * columns + j));
      sum += x * x;
    }
  sum = lanes_sum(sum);
  if (row < rows && lane == 0) sums[row] = static_cast<float>(*factor * *factor * sum);
}

// Blocks of 32 columns by 8 rows; x: columns, y: chunks of rows, z: matrices. g: [matrix rows columns]; partial: [chunk
// matrix columns]
__global__ void __launch_bounds__(kThreads)
    square_columns(AnyData g, int64_t rows, int64_t columns, int64_t matrices, double* partial) {
  __shared__ double of_rows[kRowsAtOnce][32];
  const int lane = static_cast<int>(threadIdx.x) % 32, group = static_cast<int>(threadIdx.x) / 32;
  const int64_t column = static_cast<int64_t>(blockIdx.x) * 32 + lane, chunk = blockIdx.y;
  const int64_t end = (chunk + 1) * kChunk < rows ? (chunk + 1) * kChunk : rows;
  for (int64_t matrix = blockIdx.z; matrix < matrices; matrix += gridDim.z) {
    double sum = 0;
    if (column < columns)
      for (int64_t i = chunk * kChunk + group; i < end; i += kRowsAtOnce) {
        const auto x = static_cast<double>(element_of(g, (matrix * rows + i) * columns + column));
        sum += x * x;
      }
    __syncthreads();
    of_rows[group][lane] = sum;
    __syncthreads();
    if (group != 0 || column >= columns) continue;
    sum = 0;
    for (int i = 0; i < kRowsAtOnce; ++i) sum += of_rows[i][lane];
    partial[(chunk * matrices + matrix) * columns + column] = sum;
  }
}

// partial: [chunk count]
__global__ void __launch_bounds__(kPieceThreads)
    add_chunks(const double* partial, int64_t chunks, int64_t count, const double* factor, float* sums) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    double sum = 0;
    for (int64_t c = 0; c < chunks; ++c) sum += partial[c * count + i];
    sums[i] = static_cast<float>(*factor * *factor * sum);
  }
}

// g, u: [matrix rows columns], r: [matrix rows], c: [matrix columns], r_sum: [matrix]
struct Factored {
  AnyData g;
  const float *r, *c, *r_sum;
  float* u;
  const double *factor, *finite;
  Divisor rows, columns;
};

__global__ void __launch_bounds__(kPieceThreads) direction_of_factors(Factored f, int64_t count) {
  const bool updates = *f.finite != 0;
  const auto factor = static_cast<float>(*f.factor);
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const int64_t row = f.columns.quotient(i), matrix = f.rows.quotient(row);
    const float g = element_of(f.g, i);
    // The ratio first: the product of two small sums underflows.
    const float moment = f.r[row] / f.r_sum[matrix] * f.c[matrix * f.columns.by + i - row * f.columns.by];
    f.u[i] = updates && g != 0 ? factor * g / sqrtf(moment) : 0;
  }
}

int64_t chunks_of(const MatrixSizes& m) {
  return quotient_up(m.rows, kChunk);
}

const float* moments(const View& v) {
  base::require(v.dtype() == DType::f32, "kernel", "factored moments of {} on a device", name_of(v.dtype()));
  return data<float>(v);
}

}  // namespace

int64_t factored_sums_workspace(const KernelShapes& s) {
  const MatrixSizes m = kernels::matrix_sizes(s.ins[0]->shape, s.attributes);
  return chunks_of(m) * m.count * m.columns * static_cast<int64_t>(sizeof(double));
}

void factored_sums(const KernelCall& call) {
  const View& g = call.ins[0];
  const MatrixSizes m = kernels::matrix_sizes(g.shape(), call.attributes);
  if (g.elements() == 0) return;
  const AnyData from = any_data("factored_sums", g);
  const double* const factor = data<double>(call.ins[1]);
  const int64_t rows = m.count * m.rows;
  moments(call.outs[0]), moments(call.outs[1]);
  launch(*call.stream, dim3(static_cast<unsigned>(quotient_up(rows * 32, kThreads))), dim3(kThreads), 0, square_rows,
         from, factor, rows, m.columns, data<float>(call.outs[0]));
  constexpr int64_t kMostMatrices = 65535;  // of a grid
  auto* const partial = reinterpret_cast<double*>(call.workspace.data());
  const dim3 grid(static_cast<unsigned>(quotient_up(m.columns, 32)), static_cast<unsigned>(chunks_of(m)),
                  static_cast<unsigned>(std::min(m.count, kMostMatrices)));
  launch(*call.stream, grid, dim3(kThreads), 0, square_columns, from, m.rows, m.columns, m.count, partial);
  launch_pieces(*call.stream, m.count * m.columns, add_chunks, partial, chunks_of(m), m.count * m.columns, factor,
                data<float>(call.outs[1]));
}

void factored_direction(const KernelCall& call) {
  using In = FactoredDirectionIn;
  const View& g = call.ins[In::kG];
  const MatrixSizes m = kernels::matrix_sizes(g.shape(), call.attributes);
  moments(call.outs[0]);
  const Factored f = {.g = any_data("factored_direction", g),
                      .r = moments(call.ins[In::kR]),
                      .c = moments(call.ins[In::kC]),
                      .r_sum = moments(call.ins[In::kRSum]),
                      .u = data<float>(call.outs[0]),
                      .factor = data<double>(call.ins[In::kFactor]),
                      .finite = data<double>(call.ins[In::kFinite]),
                      .rows = Divisor(std::max<int64_t>(m.rows, 1)),
                      .columns = Divisor(std::max<int64_t>(m.columns, 1))};
  launch_pieces(*call.stream, g.elements(), direction_of_factors, f, g.elements());
}

}  // namespace kintsugi::KINTSUGI_GPU
