// Planned and measured: `train` with [parallel] cluster, `train --layout auto`, `scale`, and the output of `bench`.
#include <gtest/gtest.h>

#include <fstream>

#include "kintsugi/base/file.h"
#include "tests/patterns.h"
#include "tests/process.h"
#include "tests/ranks_folder.h"

namespace kintsugi::tests::planned_run_test {

class PlannedRun : public testing::Test, public RanksFolder {
 protected:
  PlannedRun() {
    std::ofstream(folder / "machine.toml")
        << "[cluster]\nnodes = 1\ndevices_per_node = 2\n"
           "[device]\nthreads = 1\nunits = 1\nmemory = \"4 GB\"\nmemory_bandwidth = \"10 GB/s\"\n"
           "[peak]\nfp32 = \"100 GFLOP/s\"\n"
           "[products]\nshare = 0.5\ndepth = 0\nstart = \"1 us\"\ntiles = [\"16x16\"]\n"
           "[attention]\nforward = 0.3\nbackward = 0.2\n"
           "[node]\nbandwidth = \"5 GB/s\"\nstart = \"1 us\"\nstep = \"1 us\"\noverlap = 0\n";
  }
  std::string error_of(const std::string& command) const { return complaint(run_kintsugi(folder.path(), command).err); }
};

TEST_F(PlannedRun, TellsThePlanOnce) {
  const Ended ended = run_kintsugi(folder.path(),
                                   "train run.toml --set train.folder=one train.steps=9 parallel.threads=1 "
                                   "parallel.cluster=machine.toml");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string pattern =
      R"(a step takes [0-9.]+ [mu]?s, [0-9.]+ [mu]?s was planned on machine\.toml: [0-9.]+% (more|less))";
  EXPECT_EQ(find_all(ended.out + ended.err, pattern).size(), 1u) << ended.out << ended.err;
  const std::string metrics = base::read_file(folder / "one/metrics.jsonl");
  const auto planned = find_all(metrics, R"("planned_seconds":([0-9.e-]+))");
  ASSERT_EQ(planned.size(), 9u) << metrics;
  // Equals the output of plan.
  const Ended plan =
      run_kintsugi(folder.path(), "plan run.toml --cluster machine.toml --times times.csv --set parallel.threads=1");
  ASSERT_EQ(plan.code, 0) << plan.err;
  const auto times = find_all(base::read_file(folder / "times.csv"), R"(\n0,([0-9.e-]+))");
  ASSERT_EQ(times.size(), 1u);
  EXPECT_NEAR(std::stod(times[0].groups[1]), std::stod(planned[0].groups[1]), 1e-6 * std::stod(planned[0].groups[1]));
}

TEST_F(PlannedRun, TakesTheFastestLayout) {
  const Ended ended = run_kintsugi(folder.path(),
                                   "train run.toml --layout auto --ranks 2 --set train.folder=two train.steps=2 "
                                   "parallel.cluster=machine.toml");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(find_all(ended.out, R"(layout: [a-z0-9_ ,]+: [0-9.]+ [mu]?s a step is planned)").size(), 1u) << ended.out;
  EXPECT_EQ(steps("two"), 2);
  EXPECT_NE(base::read_file(folder / "two/config.toml").find("ranks = 2 "), std::string::npos);
}

TEST_F(PlannedRun, SaysWhatItLacks) {
  EXPECT_EQ(error_of("train run.toml --layout auto"),
            "error: [train] --layout auto needs [parallel] cluster, a file that describes the machine; kintsugi bench "
            "machine --into machine.toml writes one\n");
  EXPECT_EQ(error_of("train run.toml --layout auto --ranks 4 --set parallel.cluster=machine.toml"),
            "error: [train] --layout auto: 4 ranks, and machine.toml has 2 devices\n");
  EXPECT_EQ(error_of("bench products run.toml --ranks 4 --set parallel.threads=1 --into machine.toml"),
            "error: [bench] 4 ranks, but machine.toml describes 2 devices; describe as many: kintsugi bench machine "
            "--ranks 4\n");
  EXPECT_EQ(error_of("bench products run.toml --set parallel.threads=2 --into machine.toml"),
            "error: [bench] the ranks of the run have 2 threads, and a device of machine.toml has 1: --set "
            "parallel.threads=1\n");
  EXPECT_EQ(error_of("bench collectives --into none.toml"),
            "error: [bench] --into none.toml: file not found; create it first: kintsugi bench machine --into "
            "none.toml\n");
  EXPECT_EQ(error_of("bench collectives --into /dev/null"),
            "error: [bench] --into /dev/null: not a regular file; the file is read and then replaced\n");
  EXPECT_EQ(error_of("bench collectives --ranks 1"),
            "error: [bench] a single rank has no peer to communicate with; use --ranks 2\n");
  EXPECT_EQ(error_of("bench collectives --sizes 64K"),
            "error: [bench] --sizes \"64K\": write sizes up to 4 GiB, e.g. 1KiB 64KiB 1MiB\n");
  EXPECT_EQ(error_of("scale run.toml --on 1,3 --set parallel.tensor=2"),
            "error: [scale] --on 1: a replica of the run's layout takes 2 ranks; write a multiple\n");
  EXPECT_EQ(error_of("scale run.toml --on 1,4 --cluster machine.toml"),
            "error: [scale] --on 4: machine.toml has 2 devices\n");
}

TEST_F(PlannedRun, MeasuredTablesGoIntoTheFileAndThePlan) {
  const std::string sets = " --ranks 2 --set parallel.threads=1";
  ASSERT_EQ(run_kintsugi(folder.path(), "bench products run.toml --steps 1 --into machine.toml" + sets).code, 0);
  const Ended ended = run_kintsugi(folder.path(), "bench collectives --ranks 2 --sizes 4KiB --into machine.toml");
  ASSERT_EQ(ended.code, 0) << ended.err;
  const std::string file = base::read_file(folder / "machine.toml");
  EXPECT_NE(file.find("{kernel = \"contract\", type = \"fp32\""), std::string::npos) << file;
  EXPECT_NE(file.find("{collective = \"all_reduce\", ranks = 2"), std::string::npos) << file;
  EXPECT_EQ(run_kintsugi(folder.path(), "plan run.toml --cluster machine.toml" + sets).code, 0);
}

TEST_F(PlannedRun, ScalesBesideThePlan) {
  const Ended ended = run_kintsugi(folder.path(),
                                   "scale run.toml --on 1,2 --steps 1 --warm-up 1 --cluster machine.toml --csv s.csv "
                                   "--svg s.svg --set parallel.threads=1");
  ASSERT_EQ(ended.code, 0) << ended.err;
  EXPECT_EQ(find_all(base::read_file(folder / "s.csv"), R"((strong|weak),[12],[0-9]+,[0-9.e-]+,[0-9.e-]+)").size(), 4u);
  const std::string picture = base::read_file(folder / "s.svg");
  EXPECT_EQ(find_all(picture, "scaling, measured: [12] devices").size(), 4u);
  EXPECT_EQ(find_all(picture, "scaling: [12] devices").size(), 4u);
}

}  // namespace kintsugi::tests::planned_run_test
