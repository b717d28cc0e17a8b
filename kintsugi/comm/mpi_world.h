// Ranks that are processes, started by mpirun or srun. Each MPI that the build found has a module, a shared library
// (kintsugi_mpi_openmpi.so, kintsugi_mpi_mpich.so) next to the executable, one folder above it, or at the path in
// KINTSUGI_MPI_MODULE; it is loaded on first use. MPI only moves bytes and reductions are our own, so that the bits
// match those of threads.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// The MPI whose module this build has ("Open MPI" if it has both), or "".
std::string_view mpi_built();

// Call at most once per process, and use the world only on the calling thread. Throws UserError if this build has no
// MPI, or another one than started the run. Without a launcher: a world of one rank.
//
// World::abort() does not return: it gives the other ranks time to report what they waited for, then ends all processes
// with exit code 1. Destroying a world during stack unwinding, or with operations in flight, does the same.
std::unique_ptr<World> mpi_world(const WorldOptions& options = {});

}  // namespace kintsugi::comm
