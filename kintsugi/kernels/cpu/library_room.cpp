#include "kintsugi/kernels/cpu/library_room.h"

#include <array>
#include <atomic>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"
#include "kintsugi/base/memory.h"

namespace kintsugi::kernels::cpu {
namespace {

// The code of all products took 6 MiB on a processor with AVX2, packing of operands 4 MiB.
constexpr size_t kRoom = 16 << 20;

// A kind stands in one of the kNear places behind its own; 0 is an empty place.
constexpr size_t kPlaces = 4096, kNear = 8;
std::array<std::atomic<uint64_t>, kPlaces> called;

std::atomic<uint64_t>& place(uint64_t kind, size_t i) {
  return called[(kind + i) % kPlaces];
}

}  // namespace

std::unique_lock<std::mutex> one_at_a_time() {
  static std::mutex mutex;
  return std::unique_lock(mutex);
}

void require_room() {
  if (!base::has_room(kRoom))
    throw base::UserError("gemm",
                          "the system does not give the {} that oneDNN may need for its code, beside the memory of the "
                          "program; a smaller train.micro_batch needs less",
                          base::format_bytes(kRoom));
}

bool was_called(uint64_t kind) {
  for (size_t i = 0; i < kNear; ++i)
    if (place(kind, i).load(std::memory_order_relaxed) == kind) return true;
  return false;
}

// Where all places are taken, another kind is forgotten.
void remember_call(uint64_t kind) {
  size_t i = 0;
  while (i < kNear && place(kind, i).load(std::memory_order_relaxed) != 0) ++i;
  place(kind, i < kNear ? i : (kind >> 32) % kNear).store(kind, std::memory_order_relaxed);
}

}  // namespace kintsugi::kernels::cpu
