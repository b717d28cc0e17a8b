// A compute instruction bound to memory: its kernel and the address of each operand. The executor binds to the memory
// it allocated; passes bind to addresses that are never read, to query kernels.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/program/program.h"
#include "kintsugi/tensor/view.h"

namespace kintsugi::bind {

struct BoundKernel {
  const kernels::Kernel* kernel = nullptr;  // null: not a compute instruction
  std::vector<tensor::View> ins;            // of a kernel, by position
  std::vector<tensor::View> outs;
  uint32_t accumulate = 0;  // bit i: accumulates into the output at position i
  std::vector<kernels::NamedIndex> indices;
  int seq = -1;  // index in `indices` of the dim that begins at the run's position; -1: none
  int64_t seq_begin = 0;
  std::span<std::byte> workspace;
  std::vector<kernels::StatePlace> places;  // of the weights that the attribute "states" names

  std::string_view moved_dim() const {
    return seq < 0 ? std::string_view() : std::string_view(indices[static_cast<size_t>(seq)].dim);
  }
};

// Returns the address of a buffer of the states or the arena on a rank, in a call with that slot, where `memory` is the
// beginning of the program's memory: the states, then the arena. Throws InternalError for a buffer in the file.
std::byte* address_of(const program::Program& p, program::BufferId id, const program::CallList& list, int slot,
                      int rank, std::byte* memory);

// Binds an instruction of `body` of kind compute on a rank. Throws InternalError if the kernel does not support its
// operands.
BoundKernel bind_kernel(const program::Program& p, const program::Body& body, const program::Instruction& i,
                        const kernels::KernelSet& kernels, int rank,
                        const std::function<std::byte*(program::BufferId)>& address);

inline std::span<std::byte> bytes_of(const tensor::View& v) {
  return {v.data, v.data == nullptr ? 0 : static_cast<size_t>(v.type.bytes())};
}

// Whether two lists of operands overlap in memory.
bool touch(std::span<const tensor::View> these, std::span<const tensor::View> those);
bool touch(std::span<const tensor::View> views, std::span<const std::byte> bytes);

}  // namespace kintsugi::bind
