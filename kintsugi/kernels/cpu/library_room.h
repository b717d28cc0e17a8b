// oneDNN writes the machine code of a product when the first one of its kind comes. Where the system gives it no memory
// for that it does not say so, but crashes. So the first of a kind is computed alone, and only where there is room.
#pragma once

#include <cstdint>
#include <mutex>

namespace kintsugi::kernels::cpu {

// Whether this kind of call was made before, as far as is known. Nothing is allocated.
bool was_called(uint64_t kind);
void remember_call(uint64_t kind);

// For what is called the first time. While it is held, no other such call takes room.
std::unique_lock<std::mutex> one_at_a_time();
void require_room();  // UserError where the system would not give what the library may take

// f(), a call of the library. `kind` is the same for calls that take the same way through it.
template <typename F>
void call_library(uint64_t kind, const F& f) {
  if (was_called(kind)) return f();
  {
    const auto lock = one_at_a_time();
    if (!was_called(kind)) {
      require_room();
      f();
      return remember_call(kind);
    }
  }
  f();  // another thread was the first while this one waited
}

}  // namespace kintsugi::kernels::cpu
