// NVIDIA's NCCL, by those functions of its C interface that are used (its manual, "NCCL API"). It is loaded when it is
// asked for, and neither its header nor its library is needed to build.
#pragma once

#include <cstddef>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/tensor/dtype.h"

namespace kintsugi::comm::nccl {

struct Handle;  // ncclComm

struct Id {  // ncclUniqueId
  char bytes[128];
};

inline constexpr int kSuccess = 0, kInProgress = 7;  // of ncclResult_t

struct Library {
  int version = 0, cuda = 0;  // 22809: 2.28.9; that of CUDA which it was built with, 0: not known
  int (*get_version)(int* version);
  int (*get_unique_id)(Id* id);
  int (*init_rank)(Handle** made, int ranks, Id id, int rank);
  int (*destroy)(Handle* comm);
  int (*abort)(Handle* comm);
  int (*async_error)(Handle* comm, int* result);
  const char* (*error_text)(int result);
  int (*group_start)();
  int (*group_end)();
  int (*all_reduce)(const void* in, void* out, size_t count, int type, int reduction, Handle* comm, void* stream);
  int (*reduce)(const void* in, void* out, size_t count, int type, int reduction, int root, Handle* comm, void* stream);
  int (*broadcast)(const void* in, void* out, size_t count, int type, int root, Handle* comm, void* stream);
  int (*all_gather)(const void* in, void* out, size_t count, int type, Handle* comm, void* stream);
  int (*reduce_scatter)(const void* in, void* out, size_t count, int type, int reduction, Handle* comm, void* stream);
  int (*send)(const void* data, size_t count, int type, int to, Handle* comm, void* stream);
  int (*receive)(void* data, size_t count, int type, int from, Handle* comm, void* stream);
};

// Null if it cannot be loaded.
const Library* library();

// How what several communicators of a device enqueue is started, where NCCL_LAUNCH_ORDER_IMPLICIT is set.
enum class Order {
  none,         // by nobody
  one_by_one,   // each when that before it has ended
  as_enqueued,  // each when that before it has started
};
// By these versions, the last two of CUDA (13000: 13.0). The library's source, src/enqueue.cc, getImplicitOrder,
// of 2.26 to 2.28.
struct Versions {
  int library = 0;  // 0: it is not found
  int driver = 0;   // that the driver knows
  int built = 0;    // that the library was built with; 0: not known
};
Order order_of(const Versions& v, bool captured);
bool starts_in_order();  // false: the environment says otherwise

// ncclDataType_t and ncclRedOp_t. InternalError for a type that is not added.
int type_of(tensor::DType dtype);
int reduction_of(Reduction reduction);
inline constexpr int kBytes = 1;  // ncclUint8

}  // namespace kintsugi::comm::nccl
