// Data movement without computation: many rows of bytes to copy or zero.
#pragma once

#include <span>
#include <vector>

#include "kintsugi/kernels/gpu/strides.h"

namespace kintsugi::KINTSUGI_GPU {

// `rows` rows of `bytes` bytes, with these strides in bytes.
struct Move {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;  // null: zeros
  int64_t rows = 0, bytes = 0;
  int64_t to_stride = 0, from_stride = 0;
  int64_t last_stride = 0;  // `from` is offset by this times Numbers::last
};

namespace {

constexpr int kMoveThreads = 256;

// A move and its launch configuration: threads per row, and blocks.
struct LaidMove {
  Move move;
  int word = 1, threads = 1, blocks = 1;
};
struct MoveList {
  static constexpr int kMost = 32;
  LaidMove at[kMost];
};

template <typename W>
__device__ void move_words(const LaidMove& laid, const std::byte* from) {
  const Move& m = laid.move;
  const int thread = static_cast<int>(threadIdx.x), block = static_cast<int>(blockIdx.x);
  const int groups = kMoveThreads / laid.threads, row_blocks = static_cast<int>(gridDim.x) / laid.blocks;
  if (block >= row_blocks * laid.blocks) return;
  const int64_t words = m.bytes / static_cast<int64_t>(sizeof(W)),
                step = static_cast<int64_t>(laid.blocks) * laid.threads;
  const int64_t first = static_cast<int64_t>(block % laid.blocks) * laid.threads + thread % laid.threads;
  const int64_t rows = static_cast<int64_t>(row_blocks) * groups;
  for (int64_t row = static_cast<int64_t>(block / laid.blocks) * groups + thread / laid.threads; row < m.rows;
       row += rows) {
    W* to = reinterpret_cast<W*>(m.to + row * m.to_stride);
    const W* source = reinterpret_cast<const W*>(from + row * m.from_stride);
    for (int64_t w = first; w < words; w += step) to[w] = from == nullptr ? W{} : source[w];
  }
}

template <int>  // template, so that each file can define it
__global__ void __launch_bounds__(kMoveThreads) move_rows(MoveList list, const Numbers* later) {
  const LaidMove& laid = list.at[blockIdx.y];
  const std::byte* from = laid.move.from;
  if (laid.move.last_stride != 0) from += later->last * laid.move.last_stride;
  switch (laid.word) {
    case 16:
      return move_words<Word16>(laid, from);
    case 8:
      return move_words<uint64_t>(laid, from);
    case 4:
      return move_words<uint32_t>(laid, from);
    case 2:
      return move_words<uint16_t>(laid, from);
    default:
      return move_words<uint8_t>(laid, from);
  }
}

// Disjoint moves, in any order.
void launch_moves(const KernelCall& call, std::vector<Move> moves) {
  std::erase_if(moves, [](const Move& m) { return m.rows == 0 || m.bytes == 0; });
  for (size_t begin = 0; begin < moves.size(); begin += MoveList::kMost) {
    const size_t count = std::min(moves.size() - begin, static_cast<size_t>(MoveList::kMost));
    MoveList list;
    int64_t blocks = 1;
    for (size_t i = 0; i < count; ++i) {
      LaidMove& laid = list.at[i];
      laid.move = moves[begin + i];
      Move& m = laid.move;
      if (m.rows == 1) m.to_stride = m.from_stride = 0;  // strides are irrelevant to the word size then
      laid.word = word_of({address(m.to), address(m.from), m.bytes, m.to_stride, m.from_stride, m.last_stride});
      const int64_t words = m.bytes / laid.word;
      while (laid.threads < kMoveThreads && laid.threads < words) laid.threads *= 2;
      laid.blocks = static_cast<int>(std::min<int64_t>((words + laid.threads - 1) / laid.threads, 1024));
      const int64_t groups = kMoveThreads / laid.threads;
      const int64_t row_blocks = std::clamp<int64_t>((m.rows + groups - 1) / groups, 1, 2048 / laid.blocks);
      blocks = std::max(blocks, row_blocks * laid.blocks);
    }
    launch(*call.stream, dim3(static_cast<unsigned>(blocks), static_cast<unsigned>(count)), dim3(kMoveThreads), 0,
           move_rows<0>, list, call.later);
  }
}

// Rows of `bytes` bytes between the positions of two dims, one of which is offset by Numbers::position; the kernel
// matches positions.
struct FoundMove {
  std::byte* to = nullptr;
  const std::byte* from = nullptr;
  int64_t bytes = 0;
  int64_t to_above = 0, from_above = 0;  // stride of `above` in bytes, covering all positions
  LocalIndex moved = {}, other = {};
  int64_t rows = 0;
  Divisor positions = {};  // of `moved`
  bool gathers =
      false;  // copies to `moved`, with zeros for positions that `other` lacks; else from `moved`, skipping those
  int word = 1;
};

// Several independent moves of one launch.
struct FoundMoves {
  static constexpr size_t kMost = 2;
  FoundMove at[kMost];
};

constexpr int kFoundThreads = 256;
template <int>  // template, so that each file can define it
__global__ void __launch_bounds__(kFoundThreads) move_found(FoundMoves all, const Numbers* later) {
  const FoundMove& m = all.at[blockIdx.y];
  wait_for_kernels_before();
  let_next_begin();
  if (blockIdx.x >= m.rows) return;
  const int64_t row = blockIdx.x, above = m.positions.quotient(row), here = row - above * m.positions.by;
  std::byte* const to = m.to + above * m.to_above;
  const std::byte* const from = m.from + above * m.from_above;
  const auto there = [&] {
    const int64_t whole = m.moved[here];
    return whole < 0 ? -1 : m.other.local_of(whole + later->position);
  };
  const auto move = [&]<typename W>(W) {
    const int64_t words = m.bytes / static_cast<int64_t>(sizeof(W));
    const W* source = reinterpret_cast<const W*>(from + (m.gathers ? 0 : here * m.bytes));
    W first = {};  // independent of the position, so not after waiting for it
    if (!m.gathers && threadIdx.x < words) first = source[threadIdx.x];
    const int64_t other = there();
    if (!m.gathers && other < 0) return;
    if (m.gathers && other >= 0) source = reinterpret_cast<const W*>(from + other * m.bytes);
    W* const target = reinterpret_cast<W*>(to + (m.gathers ? here : other) * m.bytes);
    for (int64_t w = threadIdx.x; w < words; w += blockDim.x)
      target[w] = other < 0 ? W{} : !m.gathers && w == threadIdx.x ? first : source[w];
  };
  if (m.word == 16) return move(Word16{});
  if (m.word % 4 == 0) return move(uint32_t{});
  m.word == 2 ? move(uint16_t{}) : move(uint8_t{});
}

inline FoundMove complete(FoundMove m, int64_t above, int64_t positions) {
  m.rows = m.bytes == 0 ? 0 : above * positions;
  m.positions = Divisor(std::max<int64_t>(positions, 1));
  m.word = word_of({address(m.to), address(m.from), m.bytes, m.to_above, m.from_above});
  return m;
}

// One per call; each writes only the first output of its call.
inline void launch_found(std::span<const KernelCall> calls, std::span<const FoundMove> moves) {
  FoundMoves all;
  int64_t rows = 0;
  std::vector<device::Stream::Bytes> written;
  for (size_t i = 0; i < moves.size(); ++i) {
    all.at[i] = moves[i];
    rows = std::max(rows, moves[i].rows);
    written.push_back(bytes_of(calls[i].outs[0]));
  }
  launch_overlapping(*calls[0].stream, dim3(static_cast<unsigned>(rows), static_cast<unsigned>(moves.size())),
                     dim3(kFoundThreads), 0, std::move(written), move_found<0>, all, calls[0].later);
}

// Adjacent positions of a dim whose global positions another dim may also have.
struct Run {
  int64_t a, b, count;  // local positions in both; b is -1 if the other lacks them
};

inline std::vector<Run> runs_of(const tensor::DimIndex& a, const tensor::DimIndex& b) {
  std::vector<Run> runs;
  int64_t place = 0;
  for (const tensor::Segment& s : a.segments()) {
    for (int64_t done = 0; done < s.count;) {
      Run run{.a = place + done, .b = -1, .count = s.count - done};
      int64_t at = 0;
      for (const tensor::Segment& other : b.segments()) {
        const int64_t begin = other.global, wanted = s.global + done;
        if (s.global >= 0 && begin >= 0 && other.count > 0) {
          if (wanted >= begin && wanted < begin + other.count) {
            run.b = at + wanted - begin;
            run.count = std::min(s.count - done, begin + other.count - wanted);
            break;
          }
          if (begin > wanted) run.count = std::min(run.count, begin - wanted);
        }
        at += other.count;
      }
      runs.push_back(run);
      done += run.count;
    }
    place += s.count;
  }
  return runs;
}

inline void require_same_dtype(std::string_view kind, const View& x, const View& y) {
  base::require(x.dtype() == y.dtype(), "kernel", "{} of {} to {} on a device", kind, name_of(x.dtype()),
                name_of(y.dtype()));
}

}  // namespace
}  // namespace kintsugi::KINTSUGI_GPU
