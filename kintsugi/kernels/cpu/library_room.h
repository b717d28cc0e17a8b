// oneDNN writes the machine code of a product when the first one of its kind comes. Where the system gives it no memory
// for that it does not say so, but crashes. So what is new is computed alone, and only where there is room.
#pragma once

#include <cstdint>
#include <mutex>

namespace kintsugi::kernels::cpu {

// UserError where the system would not give what the library may take; while the lock is held, nobody else has room.
std::unique_lock<std::mutex> library_room();

// Whether this kind of call was made before, as far as is known. Nothing is allocated.
bool was_called(uint64_t kind);
void remember_call(uint64_t kind);

// f(), a call of the library. `kind` is the same for calls that take the same way through it.
template <typename F>
void call_library(uint64_t kind, const F& f) {
  if (was_called(kind)) return f();
  const auto room = library_room();
  f();
  remember_call(kind);
}

}  // namespace kintsugi::kernels::cpu
