// Whole steps on the emulated device take the memory that the plan says, to the byte, from their beginning to their
// end.
#include <gtest/gtest.h>

#include <algorithm>

#include "kintsugi/build/programs.h"
#include "kintsugi/device/emulated/emulated.h"
#include "kintsugi/program/memory_table.h"
#include "tests/layouts.h"

namespace kintsugi::tests::device_memory_test {
namespace {

using device::emulate::allocated;

struct Case {
  std::string family, dtype, layout;
};

void PrintTo(const Case& c, std::ostream* out) {
  *out << c.family << " " << c.dtype << " " << c.layout;
}

config::Settings settings_of(const Case& c) {
  config::Settings s = small_model(c.family, c.dtype);
  s.model.context = s.train.sequence = 8;
  s.train.global_batch = 8;
  s.train.micro_batch = 4;
  set_layout(s, "device=emulated " + c.layout);
  s.model.layers = std::max<int64_t>(2, s.parallel.pipe * s.parallel.chunks);
  s.train.micro_batch /= s.parallel.data;
  return s;
}

class DeviceMemory : public testing::TestWithParam<Case> {};

TEST_P(DeviceMemory, IsThatOfThePlan) {
  const config::Settings s = settings_of(GetParam());
  const std::vector<program::Program> planned = build::build_programs(s, *build::kernels_of(s));
  const auto before = allocated();
  {
    train::LayoutRun run(s);
    int64_t bytes = 0, pinned = 0;
    for (int rank = 0; rank < run.ranks(); ++rank) {
      const program::Program& own = run.executor(rank).program();
      const program::Program& p = planned[static_cast<size_t>(own.stage)];
      EXPECT_EQ(p.bytes(), own.bytes());
      EXPECT_EQ(program::memory_table(p).total(), p.bytes());
      EXPECT_GT(p.staged_bytes, 0);
      EXPECT_EQ(p.sums_bytes > 0, s.train.reproducible > 0);
      for (const int64_t part : {p.state_bytes, p.arena_bytes, p.sums_bytes, p.staged_bytes}) EXPECT_EQ(part % 256, 0);
      bytes += p.bytes();
      // Slots, what is offloaded, copies of states, numbers that are read.
      using Side = run::DeviceSide;
      pinned += Side::kSlots * p.staged_bytes + p.file_bytes + Side::kBounce + Side::kAnswers;
    }
    const auto made = allocated();
    EXPECT_EQ(made.device - before.device, bytes);
    EXPECT_EQ(made.pinned - before.pinned, pinned);
    for (int64_t step = 0; step < 3; ++step)
      run.step(step, 1e-2, [&](int64_t m, data::BatchMemory& batch) { draw_batch(s, step, m, batch); });
    EXPECT_EQ(allocated().device, made.device);
    EXPECT_EQ(allocated().pinned, made.pinned);
    for (int rank = 0; rank < run.ranks(); ++rank)
      EXPECT_TRUE(run.executor(rank).captured(program::Step::train)) << rank;
  }
  EXPECT_EQ(allocated().device, before.device);
  EXPECT_EQ(allocated().pinned, before.pinned);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DeviceMemory,
    testing::Values(Case{"gpt", "fp32", ""}, Case{"llama", "bf16", "recompute=full"}, Case{"bert", "fp16", ""},
                    Case{"gpt", "bf16", "data=2 zero=3"}, Case{"llama", "fp32", "tensor=2 sequence_parallel"},
                    Case{"llama", "fp32", "context=2 method=ring"}, Case{"gpt", "fp32", "pipe=2 schedule=1f1b"},
                    Case{"gpt", "bf16", "pipe=2 schedule=interleaved chunks=2"}, Case{"gpt", "fp32", "offload=all"},
                    Case{"gpt", "fp32", "data=2 reproducible=4"},
                    Case{"gpt", "bf16", "data=2 zero=1 gradient_dtype=bf16"}));

}  // namespace
}  // namespace kintsugi::tests::device_memory_test
