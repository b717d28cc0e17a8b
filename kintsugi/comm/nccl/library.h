// NVIDIA's NCCL, by those functions of its C interface that are used (its manual, "NCCL API"; 2.14 and newer). It is
// loaded when it is asked for, and neither its header nor its library is needed to build.
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

// ncclDataType_t and ncclRedOp_t. InternalError for a type that is not added.
int type_of(tensor::DType dtype);
int reduction_of(Reduction reduction);
inline constexpr int kBytes = 1;  // ncclUint8

}  // namespace kintsugi::comm::nccl
