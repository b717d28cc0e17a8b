#include "kintsugi/kernels/cpu/library_thread.h"

#include <omp.h>

#include <new>

#include "kintsugi/base/memory.h"

namespace kintsugi::kernels::cpu {
namespace {

bool tell_openmp() {
  if (!base::can_allocate(1 << 20)) throw std::bad_alloc();
  omp_set_num_threads(1);
  return true;
}

}  // namespace

void stay_on_this_thread() {
  thread_local const bool told = tell_openmp();
  static_cast<void>(told);
}

}  // namespace kintsugi::kernels::cpu
