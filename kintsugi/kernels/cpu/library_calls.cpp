#include "kintsugi/kernels/cpu/library_calls.h"

#include <array>
#include <atomic>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"

namespace kintsugi::kernels::cpu {
namespace {

// Measured: the code of all matmuls took 6 MiB on a processor with AVX2, packing of operands 4 MiB.
constexpr size_t kMemory = 16 << 20;

// A hash table: a kind is in one of kProbes slots from its own on; 0 is an empty slot.
constexpr size_t kSlots = 4096, kProbes = 8;
std::array<std::atomic<uint64_t>, kSlots> called;

std::atomic<uint64_t>& slot(uint64_t kind, size_t i) {
  return called[(kind + i) % kSlots];
}

}  // namespace

std::unique_lock<std::mutex> lock_first_call() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

void require_memory() {
  if (!base::can_allocate(kMemory))
    throw base::UserError("gemm",
                          "cannot allocate the {} that oneDNN may need for its code, in addition to the memory of the "
                          "program; a smaller train.micro_batch needs less",
                          base::format_bytes(kMemory));
}

bool was_called(uint64_t kind) {
  for (size_t i = 0; i < kProbes; ++i)
    if (slot(kind, i).load(std::memory_order_relaxed) == kind) return true;
  return false;
}

// If all of them are taken, evicts another kind.
void remember_call(uint64_t kind) {
  size_t i = 0;
  while (i < kProbes && slot(kind, i).load(std::memory_order_relaxed) != 0) ++i;
  slot(kind, i < kProbes ? i : (kind >> 32) % kProbes).store(kind, std::memory_order_relaxed);
}

}  // namespace kintsugi::kernels::cpu
