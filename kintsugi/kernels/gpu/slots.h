// The slots in use of a value [batch expert slot wide]: for each sample and expert the first `counts` slots of the
// whole, of which the local block has a contiguous part. Kernels neither read nor write other slots, and distribute
// work by counts in device memory, so that experts without tokens cost nothing and captured steps stay valid.
#pragma once

#include "kintsugi/kernels/gpu/common.cuh"

namespace kintsugi::KINTSUGI_GPU {

struct FilledSlots {
  const int32_t* counts = nullptr;  // [batch expert]; null: all are in use
  int batch = 1, experts = 1;
  int slots = 0;              // local ones of each expert, in use or not
  int begin = 0, length = 0;  // local slot 0 is slot `begin` of the whole; local ones from `length` on are padding

  __device__ int filled(int sample, int expert) const {
    if (counts == nullptr) return slots;
    const int n = counts[sample * experts + expert] - begin;
    return n <= 0 ? 0 : n < length ? n : length;
  }
  __device__ int filled(int expert) const {
    int n = 0;
    for (int b = 0; b < batch; ++b) n += filled(b, expert);
    return n;
  }
};

// of: [batch expert slot wide], counts: [batch expert] or absent; then all elements are rows of one expert.
inline FilledSlots filled_slots(const KernelCall& call, const tensor::Shape& of, const View& counts) {
  FilledSlots s;
  const auto small = [&](int64_t n) {
    base::require(n < (int64_t{1} << 31), "kernel", "{} of {} on a device", call.kind, to_string(of));
    return static_cast<int>(n);
  };
  if (counts.data == nullptr) {
    s.slots = small(rows(of));
    return s;
  }
  base::require(of.rank() == 4 && of[1].name == "expert" && of[2].name == "slot" && counts.dtype() == DType::i32,
                "kernel", "{} of {} on a device", call.kind, to_string(of));
  s.counts = data<int32_t>(counts);
  s.batch = small(of[0].size), s.experts = small(of[1].size), s.slots = small(of[2].size);
  small(of[0].size * of[1].size * of[2].size);
  const std::vector<tensor::Segment>& segments = call.index("slot").segments();
  if (segments.empty() || segments[0].global < 0) return s;
  base::require(segments.size() == 1 || segments[1].global < 0, "kernel", "{} of slots that are not cut contiguously",
                call.kind);
  s.begin = small(segments[0].global), s.length = small(segments[0].count);
  return s;
}

// Numbers the tiles of all experts, tiles_of(expert) each: first[e] becomes the number of those before expert e, for e
// = 0 to `experts`. All threads of the block take part. Returns the number of tiles. `first`: shared memory of experts
// + 1 elements.
template <typename F>
__device__ int number_tiles(int experts, int* first, const F& tiles_of) {
  __shared__ int of_warps[32];
  const int thread = static_cast<int>(threadIdx.x), threads = static_cast<int>(blockDim.x), lane = thread % 32;
  const int each = (experts + threads - 1) / threads, begin = thread * each < experts ? thread * each : experts,
            end = begin + each < experts ? begin + each : experts;
  int own = 0;
  for (int e = begin; e < end; ++e) own += first[e] = tiles_of(e);
  int sum = own;  // of the lanes up to this one
  for (int by = 1; by < 32; by *= 2) {
    const int other = shuffle(sum, (lane - by) & 31);
    if (lane >= by) sum += other;
  }
  if (lane == 31) of_warps[thread / 32] = sum;
  __syncthreads();
  int before = sum - own;
  for (int w = 0; w < thread / 32; ++w) before += of_warps[w];
  for (int e = begin; e < end; ++e) {
    const int n = first[e];
    first[e] = before;
    before += n;
  }
  if (thread == threads - 1) first[experts] = before;
  __syncthreads();
  return first[experts];
}

// The expert of a tile.
__device__ inline int expert_of_tile(int experts, const int* first, int tile) {
  int low = 0, high = experts;
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (first[middle] <= tile ? low : high) = middle;
  }
  return low;
}

inline size_t bytes_of_tiles(const FilledSlots& s) {
  return static_cast<size_t>(s.experts + 1) * sizeof(int);
}

// Calls f(first row, rows, expert) for all rows in use, at most `rows_each` adjacent ones at a time; the blocks of the
// grid divide them. `first`: as above.
template <typename F>
__device__ void for_filled_rows(const FilledSlots& s, int rows_each, int* first, const F& f) {
  const auto tiles_in = [&](int sample, int expert) { return (s.filled(sample, expert) + rows_each - 1) / rows_each; };
  const int tiles = number_tiles(s.experts, first, [&](int expert) {
    int n = 0;
    for (int b = 0; b < s.batch; ++b) n += tiles_in(b, expert);
    return n;
  });
  for (int tile = static_cast<int>(blockIdx.x); tile < tiles; tile += static_cast<int>(gridDim.x)) {
    const int expert = expert_of_tile(s.experts, first, tile);
    int within = tile - first[expert], sample = 0;
    for (int n = tiles_in(0, expert); within >= n; n = tiles_in(sample, expert)) within -= n, ++sample;
    const int row = within * rows_each, left = s.filled(sample, expert) - row;
    f((static_cast<int64_t>(sample) * s.experts + expert) * s.slots + row, left < rows_each ? left : rows_each, expert);
  }
}

// Launches a kernel over `rows` rows of which some are in use, at most `rows_each` per tile.
template <typename... Parameters, typename... Arguments>
void launch_filled(const KernelCall& call, const FilledSlots& s, int rows_each, void (*kernel)(Parameters...),
                   Arguments&&... arguments) {
  const int64_t tiles = static_cast<int64_t>(s.batch) * s.experts * quotient_up(s.slots, rows_each);
  const int64_t blocks = std::min(tiles, blocks_at_one_time(kernel, kPieceThreads));
  launch(*call.stream, dim3(static_cast<unsigned>(blocks)), dim3(kPieceThreads), bytes_of_tiles(s), kernel,
         std::forward<Arguments>(arguments)...);
}

}  // namespace kintsugi::KINTSUGI_GPU
