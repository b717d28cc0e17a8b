// The functions of NVIDIA NCCL's C API that are used (NCCL manual, "NCCL API"). Loaded on first use; neither its header
// nor its library is needed to build.
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
  int version = 0, cuda = 0;  // 22809: 2.28.9; the CUDA version it was built with, 0: unknown
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

// Null if the library cannot be loaded.
const Library* library();

// How NCCL orders the operations of several communicators of a device if NCCL_LAUNCH_ORDER_IMPLICIT is set.
enum class Order {
  none,         // no order
  one_by_one,   // each after the previous one has completed
  as_enqueued,  // each after the previous one has started
};
// Follows from these versions, the last two of CUDA (13000: 13.0). Source: NCCL 2.26 to 2.28, src/enqueue.cc,
// getImplicitOrder.
struct Versions {
  int library = 0;  // 0: not found
  int driver = 0;   // supported by the driver
  int built = 0;    // that NCCL was built with; 0: unknown
};
Order order_of(const Versions& v, bool captured);
bool starts_in_order();  // false: the environment disables it

// ncclDataType_t and ncclRedOp_t. Throws InternalError for a type that cannot be reduced.
int type_of(tensor::DType dtype);
int reduction_of(Reduction reduction);
inline constexpr int kBytes = 1;  // ncclUint8

}  // namespace kintsugi::comm::nccl
