// Rows of a table by token, and the gradient: positions are sorted by token, then each row of the table adds its own in
// their order, without atomics on floats.
#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

int64_t embedding_grad_workspace(const KernelShapes&);

namespace {

constexpr int kThreads = 128;

// Whether a position is padding: the dims of tokens, [batch seq].
struct Places {
  LocalIndex outer, inner;
  int64_t width;
  __device__ bool real(int64_t i) const { return outer[i / width] >= 0 && inner[i % width] >= 0; }
};

Places places_of(const KernelCall& call, const View& tokens) {
  const tensor::Shape& shape = tokens.shape();
  base::require(shape.rank() >= 1 && shape.rank() <= 2, "embedding", "tokens {}", to_string(shape));
  const std::string& last = shape[shape.rank() - 1].name;
  return {shape.rank() == 2 ? local_index(call.index(shape[0].name)) : local_index(tensor::DimIndex(1)),
          local_index(call.index(last)), shape[shape.rank() - 1].size};
}

template <typename T>
__global__ void gather(const int32_t* tokens, const T* table, T* y, LocalIndex vocab, Places places, int embed,
                       bool add) {
  const int64_t at = blockIdx.x;
  const int64_t row = places.real(at) ? vocab.local_of(tokens[at]) : -1;
  for (int e = static_cast<int>(threadIdx.x); e < embed; e += kThreads)
    put(&y[at * embed + e], row < 0 ? 0.0f : widen(table[row * embed + e]), add);
}

__global__ void count_tokens(const int32_t* tokens, int64_t count, LocalIndex vocab, int* counts) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const int64_t row = vocab.local_of(tokens[i]);
    if (row >= 0) atomic_add(&counts[row], 1);
  }
}
__global__ void zero_counts(int* counts, int64_t rows) {
  for (int64_t i = first_piece(); i < rows; i += all_threads()) counts[i] = 0;
}
// begins: [rows + 1]; one block.
__global__ void scan_counts(int* counts, int* begins, int rows) {
  __shared__ int sums[1024];
  const int threads = static_cast<int>(blockDim.x), me = static_cast<int>(threadIdx.x);
  const int each = (rows + threads - 1) / threads, begin = me * each < rows ? me * each : rows,
            end = begin + each < rows ? begin + each : rows;
  int sum = 0;
  for (int i = begin; i < end; ++i) sum += counts[i];
  sums[me] = sum;
  __syncthreads();
  int before = 0;
  for (int i = 0; i < me; ++i) before += sums[i];
  for (int i = begin; i < end; ++i) {
    begins[i] = before;
    before += counts[i];
    counts[i] = 0;
  }
  if (end == rows && begin < rows) begins[rows] = before;
  if (rows == 0 && me == 0) begins[0] = 0;
}
__global__ void place_tokens(const int32_t* tokens, int64_t count, LocalIndex vocab, int* counts, const int* begins,
                             int* positions) {
  for (int64_t i = first_piece(); i < count; i += all_threads()) {
    const int64_t row = vocab.local_of(tokens[i]);
    if (row >= 0) positions[begins[row] + atomic_add(&counts[row], 1)] = static_cast<int>(i);
  }
}
// Each group in order, by counting those before it.
__global__ void order_positions(const int* begins, const int* positions, int* ordered) {
  const int begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
  for (int i = begin + static_cast<int>(threadIdx.x); i < end; i += kThreads) {
    const int own = positions[i];
    int before = begin;
    for (int j = begin; j < end; ++j) before += positions[j] < own ? 1 : 0;
    ordered[before] = own;
  }
}
template <typename T, typename G>
__global__ void add_rows(const int* begins, const int* ordered, const T* dy, G* dtable, int embed, bool add) {
  const int begin = begins[blockIdx.x], end = begins[blockIdx.x + 1];
  if (begin == end && add) return;
  for (int e = static_cast<int>(threadIdx.x); e < embed; e += kThreads) {
    float sum = 0;
    for (int i = begin; i < end; ++i) sum += widen(dy[static_cast<int64_t>(ordered[i]) * embed + e]);
    put(&dtable[static_cast<int64_t>(blockIdx.x) * embed + e], sum, add);
  }
}

}  // namespace

int64_t embedding_grad_workspace(const KernelShapes& s) {
  return 4 * (2 * s.outs[0]->shape[0].size + 64 + 2 * s.ins[0]->shape.elements());
}

// tokens: [batch seq], table: [vocab embed], y: [batch seq embed]
void embedding(const KernelCall& call) {
  const View &tokens = call.ins[0], &table = call.ins[1];
  dispatch("embedding", table.dtype(), [&]<typename T>(T) {
    launch(*call.stream, dim3(static_cast<unsigned>(tokens.elements())), dim3(kThreads), 0, gather<T>,
           data<int32_t>(tokens), data<T>(table), data<T>(call.outs[0]), local_index(call.index(table.shape()[0].name)),
           places_of(call, tokens), static_cast<int>(width(table.shape())), call.accumulates(0));
  });
}

// dy: [batch seq embed], dtable: [vocab embed]
void embedding_grad(const KernelCall& call) {
  const View &tokens = call.ins[0], &dy = call.ins[1], &dtable = call.outs[0];
  const int64_t rows = dtable.shape()[0].size, count = tokens.elements();
  if (rows == 0) return;
  auto* counts = reinterpret_cast<int*>(call.workspace.data());
  int *begins = counts + rows, *positions = begins + rows + 64, *ordered = positions + count;
  const LocalIndex vocab = local_index(call.index(dtable.shape()[0].name));
  device::Stream& stream = *call.stream;
  const auto* ids = data<int32_t>(tokens);
  launch(stream, blocks_for(rows), dim3(256), 0, zero_counts, counts, rows);
  launch(stream, blocks_for(count), dim3(256), 0, count_tokens, ids, count, vocab, counts);
  launch(stream, dim3(1), dim3(1024), 0, scan_counts, counts, begins, static_cast<int>(rows));
  launch(stream, blocks_for(count), dim3(256), 0, place_tokens, ids, count, vocab, counts, begins, positions);
  launch(stream, dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, order_positions, begins, positions, ordered);
  dispatch("embedding_grad", dy.dtype(), [&]<typename T>(T) {
    dispatch("embedding_grad", dtable.dtype(), [&]<typename G>(G) {
      launch(stream, dim3(static_cast<unsigned>(rows)), dim3(kThreads), 0, add_rows<T, G>, begins, ordered, data<T>(dy),
             data<G>(dtable), static_cast<int>(width(dtable.shape())), call.accumulates(0));
    });
  });
}

}  // namespace kintsugi::KINTSUGI_GPU
