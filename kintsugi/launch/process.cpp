#include "kintsugi/launch/process.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <initializer_list>
#include <set>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"

namespace kintsugi::launch {
namespace {

std::string text(const Lookup& variable, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const char* value = variable(name); value != nullptr && *value != '\0') return value;
  return "";
}

// The first of the variables that begins with a number.
std::optional<int> number(const Lookup& variable, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    const char* const value = variable(name);
    if (value == nullptr) continue;
    int n = 0;
    if (std::from_chars(value, value + std::char_traits<char>::length(value), n).ec == std::errc() && n >= 0) return n;
  }
  return std::nullopt;
}

// Tasks per node, in order, from Slurm's "2(x3),1".
std::vector<int> tasks_of_nodes(const std::string& list) {
  constexpr size_t kMostNodes = 100'000;
  std::vector<int> tasks;
  for (size_t at = 0; at < list.size();) {
    const size_t end = std::min(list.find(',', at), list.size());
    const std::string part = list.substr(at, end - at);
    const size_t times = part.find("(x");
    const int n = std::atoi(part.c_str());
    const int nodes = times == std::string::npos ? 1 : std::atoi(part.c_str() + times + 2);
    for (int i = 0; i < nodes && tasks.size() < kMostNodes; ++i) tasks.push_back(n);
    at = end + 1;
  }
  return tasks;
}

void add_scheduler(const Lookup& variable, Process& p) {
  if (const std::string job = text(variable, {"SLURM_JOB_ID", "SLURM_JOBID"}); !job.empty()) {
    p.scheduler = Scheduler::slurm;
    p.job = job;
    p.restarts = number(variable, {"SLURM_RESTART_COUNT"}).value_or(0);
    p.hosts = text(variable, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
    p.nodes = number(variable, {"SLURM_STEP_NUM_NODES", "SLURM_JOB_NUM_NODES", "SLURM_NNODES"}).value_or(0);
  } else if (const std::string pbs = text(variable, {"PBS_JOBID"}); !pbs.empty()) {
    p.scheduler = Scheduler::pbs;
    p.job = pbs;
    // PBS counts the runs of a job from 1.
    p.restarts = std::max(0, number(variable, {"PBS_RUN_COUNT"}).value_or(1) - 1);
    try {
      std::set<std::string> hosts;
      const std::string lines = base::read_file(text(variable, {"PBS_NODEFILE"}));
      for (size_t at = 0; at < lines.size();) {
        const size_t end = std::min(lines.find('\n', at), lines.size());
        if (end > at) hosts.insert(lines.substr(at, end - at));
        at = end + 1;
      }
      p.nodes = static_cast<int>(hosts.size());
      for (const std::string& host : hosts) p.hosts += (p.hosts.empty() ? "" : ",") + host;
    } catch (const base::UserError&) {  // readable on the node that runs the script, perhaps not on others
    }
  } else if (const std::string flux = text(variable, {"FLUX_JOB_ID", "FLUX_ENCLOSING_ID"}); !flux.empty()) {
    p.scheduler = Scheduler::flux;
    p.job = flux;
    p.nodes = number(variable, {"FLUX_JOB_NNODES"}).value_or(0);
  } else if (variable("KUBERNETES_SERVICE_HOST") != nullptr) {
    p.scheduler = Scheduler::kubernetes;
  }
}

// What Slurm reports about the processes of a step.
void add_step(const Lookup& variable, int size, Process& p) {
  p.size = size;
  const std::vector<int> tasks = tasks_of_nodes(text(variable, {"SLURM_STEP_TASKS_PER_NODE"}));
  const auto node = static_cast<size_t>(number(variable, {"SLURM_NODEID"}).value_or(0));
  if (node < tasks.size()) p.local_size = std::max(1, tasks[node]);
}

void add_launcher(const Lookup& variable, Process& p) {
  const auto step = number(variable, {"SLURM_STEP_NUM_TASKS"});
  p.local_rank = number(variable, {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "PMI_LOCAL_RANK",
                                   "PALS_LOCAL_RANKID", "FLUX_TASK_LOCAL_ID"})
                     .value_or(0);
  const auto local = number(variable, {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "PMI_LOCAL_SIZE"});
  if (local) p.local_size = std::max(1, *local);
  const auto rank = [&](std::initializer_list<const char*> names) { return number(variable, names); };
  if (const auto r = rank({"OMPI_COMM_WORLD_RANK"}), n = rank({"OMPI_COMM_WORLD_SIZE"}); r && n && *n > 0) {
    p.launcher = Launcher::open_mpi;
    p.wireup = Wireup::pmix;
    p.mpi = Mpi::open_mpi;
    p.rank = *r;
    p.size = *n;
  } else if (const auto r = rank({"PMI_RANK"}), n = rank({"PMI_SIZE"}); r && n && *n > 0) {
    // Set by Hydra, PALS and Flux, and by srun with --mpi=pmi2.
    p.launcher = step && variable("MPI_LOCALRANKID") == nullptr ? Launcher::srun : Launcher::mpich;
    p.wireup = Wireup::pmi;
    p.mpi = Mpi::mpich;
    p.rank = *r;
    if (!local && p.launcher == Launcher::srun) add_step(variable, *n, p);
    p.size = *n;
  } else if (const auto r = rank({"PMIX_RANK"}); r && step && *step > 0) {
    p.launcher = Launcher::srun;
    p.wireup = Wireup::pmix;
    p.mpi = Mpi::open_mpi;
    p.rank = *r;
    add_step(variable, *step, p);
  } else if (const auto r = rank({"SLURM_PROCID"}); r && step && *step > 0) {
    p.launcher = Launcher::srun;
    p.rank = *r;
    add_step(variable, *step, p);
  } else if (const auto r = rank({"RANK"}), n = rank({"WORLD_SIZE"});
             r && n && *n > 0 && variable("MASTER_ADDR") != nullptr) {
    p.launcher = Launcher::torchrun;
    p.rank = *r;
    p.size = *n;
    p.local_rank = rank({"LOCAL_RANK"}).value_or(0);
    p.local_size = std::max(1, rank({"LOCAL_WORLD_SIZE"}).value_or(1));
  } else if (variable("OMPI_COMM_WORLD_SIZE") != nullptr || variable("PMIX_RANK") != nullptr) {
    p.mpi = Mpi::open_mpi;
  } else if (variable("PMI_SIZE") != nullptr || variable("PMI_RANK") != nullptr ||
             variable("MPI_LOCALRANKID") != nullptr) {
    p.mpi = Mpi::mpich;
  }
}

}  // namespace

std::string_view name_of(Scheduler scheduler) {
  switch (scheduler) {
    case Scheduler::none:
      return "";
    case Scheduler::slurm:
      return "Slurm";
    case Scheduler::pbs:
      return "PBS";
    case Scheduler::flux:
      return "Flux";
    case Scheduler::kubernetes:
      return "Kubernetes";
  }
  return "";
}

std::string_view name_of(Launcher launcher) {
  switch (launcher) {
    case Launcher::none:
      return "";
    case Launcher::open_mpi:
      return "mpirun (Open MPI)";
    case Launcher::mpich:
      return "mpiexec (MPICH)";
    case Launcher::srun:
      return "srun";
    case Launcher::torchrun:
      return "torchrun";
  }
  return "";
}

Process describe(const Lookup& variable) {
  Process p;
  add_scheduler(variable, p);
  add_launcher(variable, p);
  p.host = text(variable, {"SLURMD_NODENAME"});
  if (p.host.empty()) {
    char name[256] = {};
    ::gethostname(name, sizeof name - 1);
    p.host = name;
  }
  for (const char* name : {"PMI_FD", "PMI_PORT", "PMIX_NAMESPACE"}) p.attached |= variable(name) != nullptr;
  return p;
}

const Process& this_process() {
  static const Process process = describe([](const char* name) { return std::getenv(name); });
  return process;
}

std::optional<Launched> launched(const Process& p) {
  if (p.launcher == Launcher::none || p.wireup == Wireup::none) return std::nullopt;
  return Launched{p.rank, p.size, p.local_size};
}

std::string in_words(const Process& p) {
  std::string words = p.launcher == Launcher::none
                          ? "one process"
                          : fmt::format("rank {} of {} under {}{}", p.rank, p.size, name_of(p.launcher),
                                        p.launcher != Launcher::srun ? ""
                                        : p.wireup == Wireup::pmix   ? " (PMIx)"
                                        : p.wireup == Wireup::pmi    ? " (PMI-2)"
                                                                     : " (no PMI)");
  if (p.scheduler != Scheduler::none) {
    words += fmt::format(", {}", name_of(p.scheduler));
    if (!p.job.empty()) words += fmt::format(" job {}", p.job);
  }
  if (p.restarts > 0) words += fmt::format(", restart {}", p.restarts);
  if (!p.hosts.empty()) words += fmt::format(", on {}", p.hosts);
  return words;
}

std::string fell_apart(const Process& p, int size) {
  if (p.launcher == Launcher::none || p.size <= 1 || size == p.size) return "";
  if (p.wireup != Wireup::none)
    return fmt::format(
        "{} started {} processes, but MPI has {}: the launcher belongs to another MPI, or its variables are left in "
        "the "
        "environment; start with {}",
        name_of(p.launcher), p.size, size,
        p.launcher == Launcher::srun ? "srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)"
                                     : "the mpirun of that MPI");
  return fmt::format("{} started {} processes that do not find each other, so each would train alone; start with {}",
                     name_of(p.launcher), p.size,
                     p.launcher == Launcher::srun ? "srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)"
                                                  : "mpirun, mpiexec or srun");
}

}  // namespace kintsugi::launch
