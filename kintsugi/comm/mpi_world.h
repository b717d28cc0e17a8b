// Ranks that are processes, under mpirun or srun. There is a module for each MPI that the build found, a shared library
// (kintsugi_mpi_openmpi.so, kintsugi_mpi_mpich.so) beside the executable, one folder above it, or where
// KINTSUGI_MPI_MODULE says; it is loaded when it is asked for. MPI moves the bytes and we add, so that the bits are
// those of threads.
#pragma once

#include <memory>
#include <string>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// Once in a process, and used by the thread that called it. UserError where this build has no MPI, or not the one that
// has started the run. Of a process that nobody started as a rank: a world of one.
//
// World::abort() does not return: it gives the others time to say what they waited for, and ends all processes with
// code 1. A world that is destroyed while an exception flies, or with something left open, does the same.
std::unique_ptr<World> mpi_world(const WorldOptions& options = {});

}  // namespace kintsugi::comm
