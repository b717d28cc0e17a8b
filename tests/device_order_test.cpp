// The order of memory accesses in steps on the emulated device: all conflicting accesses are ordered, and a wait that
// is left out is detected, or was redundant.
#include <gtest/gtest.h>

#include "kintsugi/base/error.h"
#include "kintsugi/device/emulated/emulated.h"
#include "tests/layouts.h"

namespace kintsugi::tests::device_order_test {
namespace {

namespace emulate = device::emulate;

config::Settings settings_of(const std::string& layout) {
  config::Settings s = small_model("gpt", "fp32");
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 4;
  s.train.micro_batch = 2;
  s.parallel.device = "cpu";
  s.parallel.timeout_seconds = 60;
  set_layout(s, "device=emulated " + layout);
  s.train.micro_batch /= s.parallel.data;
  return s;
}

struct Ran {
  int64_t waits = 0;
  double loss = 0;
};

// Runs an enqueued step, a captured one and one more; leaves out the given wait of the first two.
Ran run_without(const config::Settings& s, int64_t wait) {
  train::LayoutRun run(s);
  const int64_t before = emulate::waits().all;
  emulate::leave_out_wait(wait < 0 ? -1 : before + wait);
  int64_t waits = 0;
  for (int64_t step = 0; step < 3; ++step) {
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
    if (step == 1) waits = emulate::waits().all - before;
  }
  emulate::leave_out_wait(-1);
  return {waits, run.loss()};
}

// A layout, the number of waits in its first two steps, and how many may be left out undetected: those at the beginning
// and end of a call list that order it with other lists, and some of a pipeline that a later wait of the same stream
// makes redundant.
struct Case {
  std::string layout;
  int64_t waits = 0, needless = 0;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << '"' << c.layout << '"';
}

class DeviceOrder : public testing::TestWithParam<Case> {};

TEST_P(DeviceOrder, AWaitThatIsLeftOutIsSeen) {
  const auto& [layout, waits, needless] = GetParam();
  const config::Settings s = settings_of(layout);
  const int64_t known = emulate::waits().known;
  const Ran whole = run_without(s, -1);
  const int64_t idle = emulate::waits().known - known;
  const int64_t most = std::getenv("KINTSUGI_ALL_WAITS") != nullptr ? whole.waits : 20;
  int64_t seen = 0;
  for (int64_t i = 0; i < most; ++i) {
    try {
      // Not detected: all conflicting accesses are ordered without it.
      EXPECT_EQ(run_without(s, i * whole.waits / most).loss, whole.loss);
    } catch (const base::InternalError& e) {
      emulate::leave_out_wait(-1);
      ++seen;
      const std::string said = e.what();
      const bool named = said.find("nothing orders the two") != said.npos || said.find("captur") != said.npos;
      EXPECT_TRUE(named) << said;
    }
  }
  std::printf("%s: %ld waits in two steps, %ld of them for what was known to be done; of %ld left out, %ld were seen\n",
              layout.c_str(), static_cast<long>(whole.waits), static_cast<long>(idle), static_cast<long>(most),
              static_cast<long>(seen));
  EXPECT_GT(seen, 0);
  // Which 20 of the waits are tested depends on which rank posts first: of 38 in 256, usually 3 are among the 20,
  // sometimes 6.
  EXPECT_LE(most - seen, needless * most / whole.waits + (most < whole.waits ? 5 : 1));
  EXPECT_LE(whole.waits, waits + waits / 10);  // of members who post at one time either may be the first
  EXPECT_LE(20 * idle, whole.waits);  // streams ask for what is new alone; the host, and a launch, may ask for more
}

INSTANTIATE_TEST_SUITE_P(Layouts, DeviceOrder,
                         testing::Values(Case{"data=2", 44, 0}, Case{"data=2 zero=3", 216, 5},
                                         Case{"tensor=2 sequence_parallel", 484, 0},
                                         Case{"context=2 method=ring", 188, 0}, Case{"offload=optimizer", 34, 0},
                                         Case{"pipe=2 schedule=1f1b", 74, 17}, Case{"pipe=2 data=2 zero=1", 256, 38}));

}  // namespace
}  // namespace kintsugi::tests::device_order_test
