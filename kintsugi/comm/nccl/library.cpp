#include "kintsugi/comm/nccl/library.h"

#include <cstdlib>
#include <optional>

#include "kintsugi/base/error.h"
#include "kintsugi/base/shared_library.h"

namespace kintsugi::comm::nccl {
namespace {

// Of several groups, what is captured beside each other is launched in the order in which it was enqueued, which is the
// same on all ranks. Set before main begins: the environment must not change once other threads may read it.
[[maybe_unused]] const int launches_in_order = ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0);

}  // namespace

const Library* library() {
  static const std::optional<Library> found = []() -> std::optional<Library> {
    const char* const names[] = {"libnccl.so.2"};
    base::VendorLibrary opened(names);
    if (!opened) return std::nullopt;
    Library l = {};
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
    return opened.found_all() ? std::optional(l) : std::nullopt;
  }();
  return found ? &*found : nullptr;
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
