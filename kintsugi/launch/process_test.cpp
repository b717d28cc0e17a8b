// Variables set by schedulers and launchers. Those of Open MPI, MPICH and Slurm are from Open MPI 4.1.4, MPICH 4.0.2
// and Slurm 22.05; those of PALS, PBS and Flux from their documentation.
#include "kintsugi/launch/process.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

namespace kintsugi::launch::process_test {
namespace {

using Variables = std::map<std::string, std::string>;

Process of(const Variables& variables) {
  return describe([&](const char* name) -> const char* {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Variables with(Variables base, const Variables& more) {
  for (const auto& [name, value] : more) base[name] = value;
  return base;
}

const Variables kStep = {{"SLURM_JOB_ID", "12"},
                         {"SLURM_JOB_NODELIST", "n[1-4]"},
                         {"SLURM_JOB_NUM_NODES", "4"},
                         {"SLURM_STEP_NODELIST", "n[1-3]"},
                         {"SLURM_STEP_NUM_NODES", "3"},
                         {"SLURM_STEP_NUM_TASKS", "5"},
                         {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"},
                         {"SLURM_NODEID", "1"},
                         {"SLURM_LOCALID", "1"},
                         {"SLURM_PROCID", "3"}};

TEST(Process, OfNoLauncher) {
  const Process p = of({});
  EXPECT_FALSE(launched(p));
  EXPECT_EQ(p.mpi, Mpi::none);
  EXPECT_EQ(p.size, 1);
  EXPECT_EQ(in_words(p), "one process");
  EXPECT_EQ(fell_apart(p, 1), "");
  EXPECT_EQ(fell_apart(p, 4), "");  // threads
}

TEST(Process, OfMpirun) {
  const Process p = of({{"OMPI_COMM_WORLD_RANK", "2"},
                        {"OMPI_COMM_WORLD_SIZE", "4"},
                        {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
                        {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                        {"PMIX_RANK", "2"}});
  const auto l = launched(p);
  ASSERT_TRUE(l);
  EXPECT_EQ(l->rank, 2);
  EXPECT_EQ(l->ranks, 4);
  EXPECT_EQ(l->local, 2);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.mpi, Mpi::open_mpi);
  EXPECT_EQ(in_words(p), "rank 2 of 4 under mpirun (Open MPI)");
}

TEST(Process, OfMpiexec) {
  const Process p = of({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"}, {"MPI_LOCALNRANKS", "2"}});
  ASSERT_TRUE(launched(p));
  EXPECT_EQ(launched(p)->local, 2);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.mpi, Mpi::mpich);
  EXPECT_EQ(in_words(p), "rank 1 of 2 under mpiexec (MPICH)");
}

TEST(Process, OfMpiexecWithinASlurmJob) {
  const Process p = of({{"SLURM_JOB_ID", "7"},
                        {"SLURM_STEP_NUM_TASKS", "1"},
                        {"SLURM_LOCALID", "0"},
                        {"PMI_RANK", "1"},
                        {"PMI_SIZE", "2"},
                        {"MPI_LOCALRANKID", "1"},
                        {"MPI_LOCALNRANKS", "2"}});
  EXPECT_EQ(p.launcher, Launcher::mpich);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.size, 2);
}

TEST(Process, OfPals) {
  const Process p = of({{"PBS_JOBID", "88.polaris"},
                        {"PMI_RANK", "5"},
                        {"PMI_SIZE", "8"},
                        {"PMI_LOCAL_RANK", "1"},
                        {"PMI_LOCAL_SIZE", "4"},
                        {"PALS_LOCAL_RANKID", "1"}});
  EXPECT_EQ(p.scheduler, Scheduler::pbs);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(p.local_size, 4);
  EXPECT_EQ(in_words(p), "rank 5 of 8 under mpiexec (MPICH), PBS job 88.polaris");
}

TEST(Process, OfSrunWithPmix) {
  const Process p = of(with(kStep, {{"PMIX_RANK", "3"}, {"SLURM_RESTART_COUNT", "1"}}));
  ASSERT_TRUE(launched(p));
  EXPECT_EQ(launched(p)->rank, 3);
  EXPECT_EQ(launched(p)->ranks, 5);
  EXPECT_EQ(launched(p)->local, 2);
  EXPECT_EQ(p.mpi, Mpi::open_mpi);
  EXPECT_EQ(p.nodes, 3);
  EXPECT_EQ(in_words(p), "rank 3 of 5 under srun (PMIx), Slurm job 12, restart 1, on n[1-3]");
  // MPICH under PMIx.
  EXPECT_EQ(
      fell_apart(p, 1),
      "srun started 5 processes, but MPI has 1: the launcher belongs to another MPI, or its variables are left in "
      "the environment; start with srun "
      "--mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)");
  EXPECT_EQ(fell_apart(p, 5), "");
}

TEST(Process, OfSrunWithPmi2) {
  const Process p = of(with(kStep, {{"PMI_RANK", "4"}, {"PMI_SIZE", "5"}, {"PMI_FD", "11"}, {"SLURM_NODEID", "2"}}));
  EXPECT_EQ(p.launcher, Launcher::srun);
  EXPECT_EQ(p.mpi, Mpi::mpich);
  EXPECT_EQ(p.local_size, 1);  // on the third node
  EXPECT_EQ(p.rank, 4);
}

// Slurm starts the processes without MPI support: they are not ranks, and no run may treat them as such.
TEST(Process, OfSrunWithoutPmi) {
  const Process p = of(kStep);
  EXPECT_FALSE(launched(p));
  EXPECT_EQ(p.rank, 3);
  EXPECT_EQ(p.local_rank, 1);
  EXPECT_EQ(fell_apart(p, 1),
            "srun started 5 processes that do not find each other, so each would train alone; start with srun "
            "--mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)");
}

// A job's script is not a task of a step, though Slurm sets SLURM_PROCID and SLURM_NTASKS for it.
TEST(Process, OfTheScriptOfAJob) {
  const Process p = of({{"SLURM_JOB_ID", "12"}, {"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "4"}, {"SLURM_LOCALID", "0"}});
  EXPECT_EQ(p.launcher, Launcher::none);
  EXPECT_EQ(fell_apart(p, 1), "");
  EXPECT_EQ(in_words(p), "one process, Slurm job 12");
}

TEST(Process, OfPbs) {
  const std::filesystem::path file = std::filesystem::path(testing::TempDir()) / "launch_process_nodefile";
  std::ofstream(file) << "x1\nx1\nx2\n";
  const Process p = of({{"PBS_JOBID", "88.polaris"}, {"PBS_NODEFILE", file.string()}, {"PBS_RUN_COUNT", "3"}});
  std::filesystem::remove(file);
  EXPECT_EQ(p.nodes, 2);
  EXPECT_EQ(p.hosts, "x1,x2");
  EXPECT_EQ(p.restarts, 2);
  EXPECT_EQ(of({{"PBS_JOBID", "88"}, {"PBS_NODEFILE", "/no/such/file"}}).nodes, 0);
}

TEST(Process, OfFluxAndTorchrun) {
  const Process flux = of({{"FLUX_JOB_ID", "f5"},
                           {"FLUX_JOB_NNODES", "2"},
                           {"PMI_RANK", "1"},
                           {"PMI_SIZE", "2"},
                           {"FLUX_TASK_LOCAL_ID", "1"}});
  EXPECT_EQ(in_words(flux), "rank 1 of 2 under mpiexec (MPICH), Flux job f5");
  EXPECT_EQ(flux.local_rank, 1);
  const Process torchrun = of({{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "a"}, {"LOCAL_RANK", "1"}});
  EXPECT_FALSE(launched(torchrun));
  EXPECT_EQ(fell_apart(torchrun, 1),
            "torchrun started 2 processes that do not find each other, so each would train alone; start with mpirun, "
            "mpiexec or srun");
  EXPECT_EQ(of({{"RANK", "1"}, {"WORLD_SIZE", "2"}}).launcher, Launcher::none);  // anybody's variables
}

TEST(Process, OfDamagedVariables) {
  EXPECT_FALSE(launched(of({{"OMPI_COMM_WORLD_SIZE", "2"}})));
  EXPECT_FALSE(launched(of({{"OMPI_COMM_WORLD_RANK", "x"}, {"OMPI_COMM_WORLD_SIZE", "2"}})));
  EXPECT_FALSE(launched(of({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}})));
  EXPECT_FALSE(launched(of({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}})));
  EXPECT_EQ(of(with(kStep, {{"SLURM_STEP_TASKS_PER_NODE", "2(x99999999999),"}})).size, 5);
  EXPECT_EQ(of({{"PMI_RANK", "1"}}).mpi, Mpi::mpich);
}

}  // namespace
}  // namespace kintsugi::launch::process_test
