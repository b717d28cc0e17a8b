// Ranks that are processes, under mpirun or srun. There is a module for each MPI that the build found, a shared
// library (kintsugi_mpi_openmpi.so, kintsugi_mpi_mpich.so) beside the executable, one folder above it, or at the path
// in KINTSUGI_MPI_MODULE; it is loaded on first use. MPI moves the bytes and we add, so that the bits are those of
// threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// The MPI whose module this build has, "Open MPI" where it has both; "" where it has none.
std::string_view mpi_built();

// At most once in a process, and used only by the thread that called it. UserError if this build has no MPI, or not
// the one that started the run. In a process that no launcher started: a world of one.
//
// World::abort() does not return: it gives the others time to print what they waited for, and ends all processes with
// code 1. Destroying a world during stack unwinding, or with open operations, does the same.
std::unique_ptr<World> mpi_world(const WorldOptions& options = {});

}  // namespace kintsugi::comm
