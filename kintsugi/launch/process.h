// Where this process runs, as the scheduler (Slurm, PBS, Flux, Kubernetes) and the launcher (mpirun, mpiexec, srun,
// torchrun) say in its environment. This is the only reader of their variables.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace kintsugi::launch {

enum class Scheduler { none, slurm, pbs, flux, kubernetes };
enum class Launcher { none, open_mpi, mpich, srun, torchrun };
// By which interface the processes of a launcher find each other.
enum class Wireup { none, pmi, pmix };
// The MPI whose launcher, or whose interface, this is.
enum class Mpi { none, open_mpi, mpich };

std::string_view name_of(Scheduler scheduler);  // "Slurm"; "" of none
std::string_view name_of(Launcher launcher);    // "mpirun (Open MPI)"; "" of none

struct Process {
  Scheduler scheduler = Scheduler::none;
  std::string job;   // its id; "" without a scheduler
  int restarts = 0;  // how often the scheduler has requeued the job
  Launcher launcher = Launcher::none;
  Wireup wireup = Wireup::none;
  Mpi mpi = Mpi::none;
  int rank = 0, size = 1;              // of all processes that were started together
  int local_rank = 0, local_size = 1;  // of those on this machine
  bool attached = false;               // its launcher can be reached over PMI, and other processes may wait for this one
  int nodes = 0;                       // 0: not known
  std::string hosts;                   // as the scheduler lists them: "n[1-4]"; "" where it does not
};

// The value of a variable; null if it is not set.
using Lookup = std::function<const char*(const char* name)>;
Process describe(const Lookup& variable);

// From the environment at the first call.
const Process& this_process();

// A process that was started as one of those that communicate over MPI; nothing for any other.
struct Launched {
  int rank = 0;
  int ranks = 1;  // all processes
  int local = 1;  // those on this machine
};
std::optional<Launched> launched(const Process& process = this_process());

// "rank 2 of 4 under srun (PMIx), Slurm job 12, restart 1, on n[1-4]"; "one process" where nothing started it.
std::string in_words(const Process& process);

// Why a world of `size` ranks is not the one that the launcher started, and what to start instead: the launcher's
// processes do not find each other, and each is a world of its own. "" where all is well.
std::string fell_apart(const Process& process, int size);

}  // namespace kintsugi::launch
