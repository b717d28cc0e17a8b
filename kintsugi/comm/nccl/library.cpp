#include "kintsugi/comm/nccl/library.h"

#include <dlfcn.h>
#include <link.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/base/shared_library.h"

namespace kintsugi::comm::nccl {
namespace {

// NCCL starts operations of several groups in the order enqueued, which is the same on all ranks, and its calls block
// until done. Set before main() begins: the environment must not change once other threads may read it.
[[maybe_unused]] const int starts_in_order = ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0),
                           blocks = ::setenv("NCCL_COMM_BLOCKING", "1", 1);

// The CUDA version of NCCL, from the text "+cuda13.0" after "NCCL version 2.28.9" in its binary: 13000, or 0 if not
// found. No NCCL function returns it.
int cuda_of(const void* in_library) {
  Dl_info of = {};
  if (dladdr(in_library, &of) == 0) return 0;
  struct Search {
    const void* base;
    int found = 0;
  } search = {.base = of.dli_fbase};
  dl_iterate_phdr(
      [](dl_phdr_info* object, size_t, void* context) {
        auto& s = *static_cast<Search*>(context);
        if (reinterpret_cast<const void*>(object->dlpi_addr) != s.base) return 0;
        for (const ElfW(Phdr) & part : std::span(object->dlpi_phdr, object->dlpi_phnum)) {
          if (part.p_type != PT_LOAD || (part.p_flags & PF_R) == 0) continue;
          const std::string_view bytes(reinterpret_cast<const char*>(object->dlpi_addr + part.p_vaddr), part.p_filesz);
          constexpr std::string_view kName = "NCCL version ", kBuilt = "+cuda";
          for (size_t at = bytes.find(kName); at != bytes.npos; at = bytes.find(kName, at + 1)) {
            const std::string text(bytes.substr(at + kName.size(), 40));
            const size_t built = text.find(kBuilt);
            int major = 0, minor = 0;
            if (built == text.npos || std::sscanf(text.c_str() + built + kBuilt.size(), "%d.%d", &major, &minor) != 2)
              continue;
            s.found = 1000 * major + 10 * minor;
            return 1;
          }
        }
        return 1;
      },
      &search);
  return search.found;
}

}  // namespace

const Library* library() {
  static const std::optional<Library> found = []() -> std::optional<Library> {
    const char* const names[] = {"libnccl.so.2"};
    base::VendorLibrary opened(names);
    if (!opened) return std::nullopt;
    Library l = {};
    opened.find("ncclGetVersion", l.get_version);
    opened.find("ncclGetUniqueId", l.get_unique_id);
    opened.find("ncclCommInitRank", l.init_rank);
    opened.find("ncclCommDestroy", l.destroy);
    opened.find("ncclCommAbort", l.abort);
    opened.find("ncclCommGetAsyncError", l.async_error);
    opened.find("ncclGetErrorString", l.error_text);
    opened.find("ncclGroupStart", l.group_start);
    opened.find("ncclGroupEnd", l.group_end);
    opened.find("ncclAllReduce", l.all_reduce);
    opened.find("ncclReduce", l.reduce);
    opened.find("ncclBroadcast", l.broadcast);
    opened.find("ncclAllGather", l.all_gather);
    opened.find("ncclReduceScatter", l.reduce_scatter);
    opened.find("ncclSend", l.send);
    opened.find("ncclRecv", l.receive);
    if (!opened.found_all() || l.get_version(&l.version) != kSuccess) return std::nullopt;
    l.cuda = cuda_of(reinterpret_cast<const void*>(l.get_version));
    return l;
  }();
  return found ? &*found : nullptr;
}

bool starts_in_order() {
  const char* const text = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return text != nullptr && std::strtoll(text, nullptr, 0) != 0;  // parsed as NCCL does
}

Order order_of(const Versions& v, bool captured) {
  if (v.library < 22600) return Order::none;
  const bool starts = std::min(v.driver, v.built) >= 12030 && (!captured || (v.library >= 22700 && v.driver >= 12090));
  return starts ? Order::as_enqueued : Order::one_by_one;
}

int type_of(tensor::DType dtype) {
  using tensor::DType;
  switch (dtype) {
    case DType::i32:
      return 2;
    case DType::i64:
      return 4;
    case DType::f16:
      return 6;
    case DType::f32:
      return 7;
    case DType::f64:
      return 8;
    case DType::bf16:
      return 9;
    default:
      throw base::InternalError("comm", "NCCL adds no {}", tensor::name_of(dtype));
  }
}

int reduction_of(Reduction reduction) {
  switch (reduction) {
    case Reduction::sum:
      return 0;
    case Reduction::max:
      return 2;
    case Reduction::min:
      return 3;
    case Reduction::mean:
      return 4;
  }
  throw base::InternalError("comm", "reduction {}", static_cast<int>(reduction));
}

}  // namespace kintsugi::comm::nccl
