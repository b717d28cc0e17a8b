#include "kintsugi/comm/nccl/library.h"

#include <cstdlib>
#include <optional>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/base/shared_library.h"

namespace kintsugi::comm::nccl {
namespace {

// Of several groups, what is enqueued is started in that order, which is the same on all ranks; and calls return when
// they are done. Set before main begins: the environment must not change once other threads may read it.
[[maybe_unused]] const int starts_in_order = ::setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0),
                           blocks = ::setenv("NCCL_COMM_BLOCKING", "1", 1);

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
    return l;
  }();
  return found ? &*found : nullptr;
}

bool starts_in_order() {
  const char* const text = std::getenv("NCCL_LAUNCH_ORDER_IMPLICIT");
  return text != nullptr && std::string_view(text) != "0";
}

Order order_of(int version, int driver, bool captured) {
  if (version < 22600) return Order::none;
  const bool starts = captured ? version >= 22700 && driver >= 12090 : driver >= 12030;
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
