// The measured kernels of a run cover its programs, so its simulation estimates none.
#include "kintsugi/calibrate/measure_kernels.h"

#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/calibrate/describe_machine.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "kintsugi/simulate/simulate.h"
#include "kintsugi/simulate/write_cluster.h"

namespace kintsugi::calibrate::measure_kernels_test {

config::Settings run(const std::string& parallel) {
  const std::string text =
      "[model]\nlayers = 2\nembed = 32\nheads = 2\nvocab = 64\n[train]\nsequence = 16\nglobal_batch = 4\nmicro_batch = "
      "1\n[parallel]\nthreads = 1\n" +
      parallel;
  return config::resolve(config::read_text(text, "run.toml", models::catalog()), 2).settings;
}

class MeasuresKernels : public testing::TestWithParam<std::string> {};

TEST_P(MeasuresKernels, OfEachInstruction) {
  const config::Settings s = run(GetParam());
  const auto programs = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  simulate::Cluster cluster = describe_machine({.ranks = 2, .threads = 1}, {{2, 1e10, 1e10, 1e10}});
  cluster.storage_bandwidth = 1e9;
  add_kernels(cluster, measure_kernels({.settings = s, .stages = programs, .steps = 1}));
  for (const program::Program& p : programs)
    for (const program::Call& call : p.list(program::Step::train).calls)
      for (const program::Instruction& i : p.bodies[static_cast<size_t>(call.body)].instructions)
        if (i.kind == program::Kind::compute) {
          const simulate::MeasuredKernel* found = cluster.measured.find(simulate::key_of(p, i));
          ASSERT_TRUE(found) << i.kernel;
          EXPECT_GT(found->seconds, 0);
          EXPECT_LT(found->seconds, 1);
        }
  // The measurements form a cluster, and the step on it takes at least its kernels' time.
  const simulate::Cluster read = simulate::parse_cluster(to_toml(cluster), "c.toml");
  const simulate::Simulated r = simulate::simulate(programs, read, simulate::softwares()[0]);
  EXPECT_GE(r.seconds, r.stages[0].kernels[0]);
  EXPECT_GT(r.stages[0].kernels[0], 0);
}

INSTANTIATE_TEST_SUITE_P(Layouts, MeasuresKernels,
                         testing::Values("data = 2\nzero = 3\n", "tensor = 2\nsequence_parallel = true\n", "pipe = 2\n",
                                         "context = 2\ncontext_method = \"ring\"\n", "offload = \"all\"\n"));

TEST(MeasureKernels, RefusesDevicesThatItCannotTime) {
  config::Settings s = run("");
  const auto programs = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
  s.parallel.device = "emulated";
  try {
    measure_kernels({.settings = s, .stages = programs});
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_NE(std::string(e.what()).find("--set parallel.device=cpu"), std::string::npos) << e.what();
  }
}

}  // namespace kintsugi::calibrate::measure_kernels_test
