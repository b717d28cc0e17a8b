#include "kintsugi/base/memory.h"

#include <sys/mman.h>

namespace kintsugi::base {

bool can_allocate(size_t bytes) {
  void* data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) return false;
  ::munmap(data, bytes);
  return true;
}

}  // namespace kintsugi::base
