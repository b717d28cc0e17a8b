// The job verbs without a scheduler: which failures are restarted, which are not, and how a run ends.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "kintsugi/base/file.h"
#include "tests/mpi_launch.h"
#include "tests/paths.h"
#include "tests/process.h"

namespace kintsugi::tests::jobs_run_test {
namespace {

class Jobs : public ::testing::Test {
 protected:
  Jobs() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n[train]\nfolder = \"run\"\n"
           "steps = 300\nglobal_batch = 4\nsequence = 16\nevent_files = false\n[checkpoint]\nevery = 20\n[parallel]\n"
           "threads = 1\n";
    EXPECT_EQ(run_kintsugi(folder.path(), "prepare text.txt --tokenizer bytes --output corpus").code, 0);
  }

  Ended run(const std::string& arguments, const std::string& before = ":") const {
    return run_kintsugi(folder.path(), arguments, before);
  }
  int64_t steps(const std::string& name) const {
    const fs::path path = folder / name / "metrics.jsonl";
    const std::string text = fs::exists(path) ? base::read_file(path) : "";
    return std::count(text.begin(), text.end(), '\n');
  }
  // The lines of metrics.jsonl, without those that depend on the clock.
  std::string numbers(const std::string& name) const {
    std::istringstream in(base::read_file(folder / name / "metrics.jsonl"));
    std::string text;
    for (std::string line; std::getline(in, line);) text += line.substr(0, line.find(",\"tokens_per_second\"")) + "\n";
    return text;
  }
  std::string attempts(const std::string& name = "run") const {
    return base::read_file(folder / name / "attempts.jsonl");
  }
  // The process started by a supervisor.
  pid_t child_of(pid_t pid) const {
    std::ifstream in(fmt::format("/proc/{0}/task/{0}/children", pid));
    pid_t child = 0;
    in >> child;
    return child;
  }

  TemporaryFolder folder;
};

}  // namespace

TEST_F(Jobs, ResumeAutoBeginsAndGoesOn) {
  EXPECT_EQ(run("train run.toml --set train.folder=whole").code, 0);
  EXPECT_EQ(run("train run.toml --resume auto --set train.stop_after_minutes=0.00001").code, 0);
  ASSERT_LT(steps("run"), 300);
  const Ended ended = run("train run.toml --resume auto --set train.stop_after_minutes=0");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("resumed at step "), std::string::npos) << ended.err;
  EXPECT_EQ(numbers("run"), numbers("whole"));
  // The word after --resume may be the configuration.
  EXPECT_EQ(run("train --resume run.toml").code, 0);
  EXPECT_EQ(run("train --resume no run.toml").err,
            "error: [train] --resume no is not auto; see kintsugi train --help\n");
}

TEST_F(Jobs, ARankThatIsKilledIsStartedAgain) {
  EXPECT_EQ(run("train run.toml --set train.folder=whole train.steps=1000 checkpoint.every=0").code, 0);
  Process process(folder.path(), "launch run.toml --set train.steps=1000 --with env");
  ASSERT_TRUE(process.wait_for([&] { return steps("run") > 60; })) << process.told();
  const pid_t child = child_of(process.pid());
  ASSERT_GT(child, 0);
  ::kill(child, SIGKILL);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_NE(ended.err.find("launch: the ranks ended: signal 9; restarting from step "), std::string::npos) << ended.err;
  EXPECT_NE(ended.err.find("launch: finished: 1,000 steps, in 2 attempts"), std::string::npos) << ended.err;
  EXPECT_EQ(numbers("run"), numbers("whole"));
  const Ended status = run("status run");
  EXPECT_EQ(status.code, 0) << status.err;
  EXPECT_NE(status.out.find("state       finished\nstep        1000 of 1000, loss "), std::string::npos) << status.out;
  EXPECT_NE(status.out.find("attempts    2, 1 failed"), std::string::npos) << status.out;
}

TEST_F(Jobs, ASignalEndsTheStepAndGoesOnLater) {
  EXPECT_EQ(run("train run.toml --set train.folder=whole train.steps=1000 checkpoint.every=0").code, 0);
  Process process(folder.path(), "launch run.toml --set train.steps=1000 --with env --again 'echo later > again.txt'");
  ASSERT_TRUE(process.wait_for([&] { return steps("run") > 20; })) << process.told();
  process.send(SIGUSR1);
  const Ended ended = process.wait();
  EXPECT_EQ(ended.code, 0) << ended.err;
  ASSERT_LT(steps("run"), 1000);
  EXPECT_NE(ended.err.find(
                fmt::format("launch: stopped at step {} of 1000; going on with: echo later > again.txt", steps("run"))),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(base::read_file(folder / "again.txt"), "later\n");
  EXPECT_NE(attempts().find("\"outcome\":\"stopped\""), std::string::npos) << attempts();
  const std::string status = run("status run").out;
  EXPECT_NE(status.find("attempts    1, 1 stopped; the last: told to end; waits for: echo later > again.txt\n"),
            std::string::npos)
      << status;
  EXPECT_EQ(run("launch run.toml --set train.steps=1000").code, 0);
  EXPECT_EQ(numbers("run"), numbers("whole"));
}

TEST_F(Jobs, TwoAttemptsWithoutProgressAreTheLast) {
  const Ended ended = run("launch run.toml --with false");
  EXPECT_EQ(ended.code, 93) << ended.err;
  EXPECT_NE(ended.err.find("error: [launch] two attempts in a row ended without a new checkpoint, at step 0; the last: "
                           "the ranks ended: code 1; the run is not restarted automatically\n"),
            std::string::npos)
      << ended.err;
  EXPECT_EQ(std::ranges::count(attempts(), '\n'), 5) << attempts();  // of which the last says that it was given up
  EXPECT_EQ(run("launch run.toml --with env").code, 0);              // by hand it begins anew
}

TEST_F(Jobs, AnErrorThatWouldRecurIsNotTriedAgain) {
  const Ended ended = run("launch run.toml --set data.train=nowhere --with env");
  EXPECT_EQ(ended.code, 1);
  EXPECT_NE(ended.err.find("error: [launch] an error of the run: error: [tokens] there is no token file "),
            std::string::npos)
      << ended.err;
  EXPECT_NE(ended.err.find("; this error would recur, so the run is not restarted\n"), std::string::npos) << ended.err;
}

TEST_F(Jobs, AreRefusedBeforeAnythingIsQueued) {
  const auto error = [&](const std::string& arguments, const std::string& before = ":") {
    const Ended ended = run("job run.toml " + arguments, before);
    EXPECT_EQ(ended.code, 1) << arguments;
    return ended.err;
  };
  EXPECT_EQ(error("--site slurm --nodes 4"),
            "error: [job] --nodes 4: the run has 1 rank; --ranks 4 gives one to each node\n");
  EXPECT_EQ(error("--site slurm --time soon"),
            "error: [job] --time soon is not a time from a minute to a year; write 90 (minutes), 1:30:00, 2-12:00:00 "
            "(days) or 2h\n");
  EXPECT_EQ(error("--site slurm --submit", "PATH=/nowhere"),
            "error: [job] --submit: sbatch not found, so jobs cannot be submitted to a Slurm cluster from this host; "
            "leave --submit out to write the script only\n");
  EXPECT_EQ(run("launch run.toml --with 'no_such_launcher -n 4'").err,
            "error: [launch] --with: no_such_launcher not found; in a container, bind it from the host\n");
  EXPECT_EQ(error("--site slurm --output run.toml").rfind("error: [job] --output", 0), 0u);
  std::ofstream(folder / "my.toml") << "[site]\ntitle = \"x\"\nscheduler = \"slurm\"\nqueue = \"y\"\n";
  EXPECT_EQ(error("--site my.toml"),
            "error: [job] my.toml:4: unknown key site.queue; [site] has title, scheduler, again, directives, modules, "
            "partition, storage, image, claim\n");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

// A preloaded library plays a file system without locks, one without renames, and a host whose clock is late.
TEST_F(Jobs, AnUnusableFileSystemIsRefusedBeforeAnythingIsQueued) {
  const fs::path source = folder / "calls.c", library = folder / "calls.so";
  std::ofstream(source) << "#define _GNU_SOURCE\n#include <errno.h>\n#include <stdlib.h>\n#include <sys/syscall.h>\n"
                           "#include <time.h>\n#include <unistd.h>\n"
                           "static char kind(void) { return getenv(\"KIND\")[0]; }\n"
                           "int flock(int f, int how) {\n"
                           "  if (kind() != 'l') return syscall(SYS_flock, f, how);\n"
                           "  errno = ENOLCK;\n  return -1;\n}\n"
                           "int rename(const char* from, const char* to) {\n"
                           "  if (kind() != 'r') return syscall(SYS_renameat2, -100, from, -100, to, 0);\n"
                           "  errno = EOPNOTSUPP;\n  return -1;\n}\n"
                           "int clock_gettime(clockid_t c, struct timespec* t) {\n"
                           "  const int r = syscall(SYS_clock_gettime, c, t);\n"
                           "  if (kind() == 'c' && c == CLOCK_REALTIME) t->tv_sec -= 90;\n"
                           "  return r;\n}\n";
  if (std::system(("cc -shared -fPIC -o " + library.string() + " " + source.string()).c_str()) != 0)
    GTEST_SKIP() << "no C compiler";
  for (const auto& [kind, error] : {std::pair{"locks", ", which needs locks and renames: cannot lock "},
                                    {"renames", ", which needs renames: Operation not supported\n"},
                                    {"clock", " s ahead of that of this host; set both by NTP: chronyc makestep\n"}}) {
    const Ended ended = run_kintsugi(folder.path(), "job run.toml --site slurm --output job.sh",
                                     std::string("export KIND=") + kind, "env LD_PRELOAD=" + library.string());
    EXPECT_EQ(ended.code, 1) << kind;
    EXPECT_EQ(std::ranges::count(ended.err, '\n'), 1) << ended.err;
    EXPECT_NE(ended.err.find(error), std::string::npos) << ended.err;
    EXPECT_FALSE(fs::exists(folder / "job.sh")) << kind;
  }
}

TEST_F(Jobs, ARunThatDoesNotFitIsAWarning) {
  std::ofstream(folder / "my.toml") << "[site]\ntitle = \"x\"\nscheduler = \"slurm\"\n[node]\nmemory = \"1 MiB\"\n"
                                       "[launch]\ncommand = \"srun\"\n";
  const Ended ended = run("job run.toml --site my.toml --set model.embed=64");
  EXPECT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(ended.err.rfind("warning: the run does not fit: ", 0), 0u) << ended.err;
  EXPECT_EQ(ended.out, "run/job.sh: 1 rank on 1 node of x, 01:00:00\nsubmit it with: sbatch run/job.sh\n");
  EXPECT_EQ(run("train run.toml --set train.steps=2 train.warmup_steps=0").code, 0);  // the folder is still free for it
}

// A rank that runs for a fifth of the time is named in the log and by status, until it keeps up again.
TEST_F(Jobs, AStragglerIsNamed) {
  using Clock = std::chrono::steady_clock;
  const auto mpi = std::ranges::find_if(kMpis, is_there);
  if (mpi == kMpis.end()) GTEST_SKIP() << "no MPI";
  // Enough arithmetic that ranks do not mostly wait.
  Process process(
      folder.path(),
      "train run.toml --ranks 2 --set train.steps=1000000 train.warmup_steps=0 train.global_batch=8 "
      "train.sequence=128 model.layers=2 model.embed=128 checkpoint.every=1000 launch.straggler_seconds=0.5",
      ":", mpi->run + " -n 2");
  ASSERT_TRUE(process.wait_for([&] { return steps("run") > 5; })) << process.told();
  const pid_t slow = ranks_in(folder.path()).at(1);
  // It runs for a step, which takes long on a busy machine, and is stopped for four times as long.
  const auto slow_down = [&] {
    const auto began = Clock::now();
    for (const int64_t before = steps("run"); steps("run") == before && Clock::now() - began < std::chrono::seconds(2);)
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    const auto ran = std::max<Clock::duration>(Clock::now() - began, std::chrono::milliseconds(5));
    ::kill(slow, SIGSTOP);
    std::this_thread::sleep_for(4 * ran);
    ::kill(slow, SIGCONT);
  };
  const auto told = [&](const char* text) { return process.told().find(text) != std::string::npos; };
  const auto until = Clock::now() + std::chrono::seconds(180);
  process.wait_for([&] {
    slow_down();
    return told(" is a straggler: its step takes ") || Clock::now() > until;
  });
  EXPECT_TRUE(told("rank 1 on ") && told(" is a straggler: its step takes ")) << process.told();
  EXPECT_FALSE(told("rank 0 on ")) << process.told();
  const Ended status = run("status run");
  EXPECT_NE(status.out.find("straggler   rank 1 on "), std::string::npos) << status.out;
  EXPECT_NE(process.told().find("rank 1 on "), std::string::npos) << process.told();
  EXPECT_EQ(process.told().find("rank 0 on "), std::string::npos) << process.told();
  EXPECT_TRUE(process.wait_for([&] { return process.told().find(" is no longer a straggler") != std::string::npos; }))
      << process.told();
  EXPECT_EQ(run("status run").out.find("straggler"), std::string::npos);
  process.send(SIGTERM);
  process.wait();
}

// With a cluster the time is planned: one that is enough is proposed, and one that is not is a warning.
TEST_F(Jobs, TheTimeIsPlanned) {
  std::ofstream(folder / "my.toml") << "[site]\ntitle = \"x\"\nscheduler = \"slurm\"\n[launch]\ncommand = \"srun\"\n";
  const std::string command = fmt::format(
      "job run.toml --site my.toml --nodes 4 --ranks 4 --time 10 --set parallel.cluster={}/clusters/perlmutter.toml "
      "train.global_batch=4 ",
      source_folder());
  const Ended enough = run(command);
  EXPECT_EQ(enough.code, 0) << enough.err;
  EXPECT_NE(enough.out.find("\nplanned: 300 steps of "), std::string::npos) << enough.out;
  EXPECT_NE(enough.out.find("; --time "), std::string::npos) << enough.out;
  // A model this small does not get faster by nodes.
  EXPECT_NE(
      enough.err.find("warning: at this global batch more than 1 node only add communication: the planned step takes "),
      std::string::npos)
      << enough.err;
  const Ended longer = run(command + "train.steps=100000000");
  EXPECT_EQ(longer.code, 0) << longer.err;
  EXPECT_NE(longer.err.find("warning: the job ends before the run, which is planned as 100000000 steps of "),
            std::string::npos)
      << longer.err;
  EXPECT_EQ(longer.out.find("planned: "), std::string::npos) << longer.out;
}

// Launcher variables in the environment of a single-process command.
TEST_F(Jobs, AVerbOfOneProcessEndsWithItsError) {
  for (const char* launcher : {"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", "PMI_RANK=0 PMI_SIZE=2"}) {
    const Ended ended = run_kintsugi(folder.path(), "check run.toml", std::string("export ") + launcher);
    EXPECT_EQ(ended.code, 1) << launcher;
    EXPECT_EQ(ended.signal, 0) << launcher;
    EXPECT_EQ(ended.err,
              "error: [check] this verb runs in one process, but 2 were started; start it without mpirun or srun\n");
  }
}

// Likewise a verb that launchers may start, whether or not it reads its configuration before it starts MPI.
TEST_F(Jobs, AVerbOfSeveralProcessesEndsWithItsError) {
  ASSERT_EQ(run("train run.toml --set train.steps=2 train.warmup_steps=0").code, 0);
  for (const auto& [launcher, mpi] :
       {std::pair{"OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_SIZE=2", kMpis[0]}, {"PMI_RANK=0 PMI_SIZE=2", kMpis[1]}}) {
    const Ended missing = run("train missing.toml", std::string("export ") + launcher);
    EXPECT_EQ(missing.code, 1) << launcher;
    EXPECT_EQ(missing.signal, 0) << launcher;
    EXPECT_EQ(missing.err, "error: [file] cannot open \"missing.toml\": No such file or directory\n");
    if (!is_there(mpi)) continue;
    const Ended alone = run("generate run --prompt a --length 2", std::string("export ") + launcher);
    EXPECT_EQ(alone.code, 1) << launcher;
    EXPECT_NE(alone.err.find(" started 2 processes, but MPI has 1: "), std::string::npos) << alone.err;
    EXPECT_EQ(alone.err.find("left the run early"), std::string::npos) << alone.err;
  }
}

// srun without PMI, according to its variables.
TEST_F(Jobs, WorldsThatFellApartAreRefused) {
  const Ended ended =
      run("train run.toml",
          "export SLURM_JOB_ID=3 SLURM_PROCID=0 SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE='1(x4)'");
  EXPECT_EQ(
      ended.err,
      "error: [launch] srun started 4 processes that do not find each other, so each would train alone; start with "
      "srun --mpi=pmix (Open MPI) or srun --mpi=pmi2 (MPICH)\n");
  EXPECT_FALSE(fs::exists(folder / "run"));
}

}  // namespace kintsugi::tests::jobs_run_test
