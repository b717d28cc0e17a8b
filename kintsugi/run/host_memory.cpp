#include "kintsugi/run/host_memory.h"

#include <sys/mman.h>

#include "kintsugi/base/error.h"
#include "kintsugi/base/format.h"

namespace kintsugi::run {

Arena::Arena(int64_t bytes) : bytes_(bytes) {
  if (bytes == 0) return;
  void* data = ::mmap(nullptr, static_cast<size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED)
    throw base::UserError("run",
                          "cannot allocate the {} that the program needs; a smaller train.micro_batch needs less",
                          base::format_bytes(static_cast<uint64_t>(bytes)));
  ::madvise(data, static_cast<size_t>(bytes), MADV_HUGEPAGE);  // a hint; correct without it
  data_ = static_cast<std::byte*>(data);
}

Arena::~Arena() {
  if (data_) ::munmap(data_, static_cast<size_t>(bytes_));
}

}  // namespace kintsugi::run
