// Checks the result of every MPI call.
#pragma once

#include <mpi.h>

#include <source_location>

#include "kintsugi/base/error.h"

namespace kintsugi::comm {

inline void check_mpi(int result, std::source_location where = std::source_location::current()) {
  if (result == MPI_SUCCESS) return;
  char text[MPI_MAX_ERROR_STRING] = "?";
  int length = 0;
  MPI_Error_string(result, text, &length);
  throw base::UserError("comm", "MPI says: {} ({}:{})", text, where.file_name(), where.line());
}

}  // namespace kintsugi::comm
