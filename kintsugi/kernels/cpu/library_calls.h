// oneDNN generates the machine code of a primitive at the first call of its kind. If it cannot allocate memory for that
// it crashes without an error. So the first call of a kind runs alone, and only if there is enough memory.
#pragma once

#include <cstdint>
#include <mutex>

namespace kintsugi::kernels::cpu {

// Whether this kind of call was made before, as far as known. Does not allocate.
bool was_called(uint64_t kind);
void remember_call(uint64_t kind);

// For the first call of a kind. While the lock is held, no other first call takes memory.
std::unique_lock<std::mutex> lock_first_call();
void require_memory();  // UserError if the memory that the library may need cannot be allocated

// Runs f(), a call of the library. `kind` is equal for calls that use the same generated code.
template <typename F>
void call_library(uint64_t kind, const F& f) {
  if (was_called(kind)) return f();
  {
    const auto lock = lock_first_call();
    if (!was_called(kind)) {
      require_memory();
      f();
      return remember_call(kind);
    }
  }
  f();  // another thread made the first call while this one waited
}

}  // namespace kintsugi::kernels::cpu
