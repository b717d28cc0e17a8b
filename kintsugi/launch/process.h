// Where this process runs, according to the environment set by the scheduler (Slurm, PBS, Flux, Kubernetes) and the
// launcher (mpirun, mpiexec, srun, torchrun). The only reader of their variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::launch {

enum class Scheduler { none, slurm, pbs, flux, kubernetes };
enum class Launcher { none, open_mpi, mpich, srun, torchrun };
// The interface through which the processes of a launcher find each other.
enum class Wireup { none, pmi, pmix };
// The MPI that the launcher, or the interface, belongs to.
enum class Mpi { none, open_mpi, mpich };

std::string_view name_of(Scheduler scheduler);  // "Slurm"; "" for none
std::string_view name_of(Launcher launcher);    // "mpirun (Open MPI)"; "" for none

struct Process {
  Scheduler scheduler = Scheduler::none;
  std::string job;   // job id; "" without a scheduler
  int restarts = 0;  // number of times the scheduler has requeued the job
  Launcher launcher = Launcher::none;
  Wireup wireup = Wireup::none;
  Mpi mpi = Mpi::none;
  int rank = 0, size = 1;              // among all processes started together
  int local_rank = 0, local_size = 1;  // among those on this machine
  bool attached = false;               // the launcher is reachable over PMI, and other processes may wait for this one
  int nodes = 0;                       // 0: not known
  std::string host;                    // this node, as the scheduler names it
  std::string hosts;                   // in the scheduler's notation: "n[1-4]"; "" if unknown
};

// The value of a variable; null if it is not set.
using Lookup = std::function<const char*(const char* name)>;
Process describe(const Lookup& variable);

// Reads the environment at the first call.
const Process& this_process();

// A process started as one of several that communicate over MPI; nothing for other processes.
struct Launched {
  int rank = 0;
  int ranks = 1;  // all processes
  int local = 1;  // those on this machine
};
std::optional<Launched> launched(const Process& process = this_process());

// "rank 2 of 4 under srun (PMIx), Slurm job 12, restart 1, on n[1-4]"; "one process" if nothing launched it.
std::string in_words(const Process& process);

// If a world of `size` ranks is not the one that the launcher started: why (its processes do not find each other, so
// that each is a world of its own), and what to start instead. "" if all is well.
std::string fell_apart(const Process& process, int size);

}  // namespace kintsugi::launch
