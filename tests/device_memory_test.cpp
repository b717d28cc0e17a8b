// Steps on the emulated device use the planned memory, to the byte, from start to end; and so do `plan --cluster` and a
// search for the device that a cluster file describes.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "kintsugi/base/file.h"
#include "kintsugi/base/format.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/device/emulated/emulated.h"
#include "kintsugi/models/models.h"
#include "kintsugi/program/memory_table.h"
#include "kintsugi/search/search.h"
#include "kintsugi/simulate/cluster.h"
#include "tests/csv_columns.h"
#include "tests/device_layouts.h"
#include "tests/layouts.h"
#include "tests/paths.h"
#include "tests/process.h"

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
  if (models::reads_images(s.model)) set_image(s.model);
  if (s.model.experts > 0) {
    s.model.experts = 4, s.model.experts_per_token = 2;
    s.train.balance = "loss";
  }
  s.train.micro_batch /= config::data_ranks(s.parallel);
  return s;
}

class DeviceMemory : public testing::TestWithParam<Case> {};

TEST_P(DeviceMemory, IsThatOfThePlan) {
  const config::Settings s = settings_of(GetParam());
  const std::vector<program::Program> planned = compile::compile({.settings = s, .kernels = *compile::kernels_of(s)});
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
      // Slots, offloaded states, copies of states, scalars that are read back.
      using Side = run::DeviceSide;
      pinned += Side::kSlots * p.staged_bytes + p.file_bytes + Side::kBounce + Side::kAnswers;
    }
    const auto made = allocated();
    EXPECT_EQ(made.device - before.device, bytes);
    EXPECT_EQ(made.pinned - before.pinned, pinned);
    for (int64_t step = 0; step < 3; ++step)
      run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
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
                    Case{"gpt", "bf16", "data=2 zero=1 gradient_dtype=bf16"}, Case{"lenet", "bf16", "recompute=full"},
                    Case{"lenet", "fp32", "space=2 data=2 zero=1"}, Case{"unet", "fp32", "space=2"},
                    Case{"mixtral", "bf16", ""}, Case{"gpt_oss", "fp32", "expert=2 data=2 zero=1"}));

// The run whose GPUs a cluster file describes, in one of the layouts that a search tries.
struct OnCards {
  std::string name, dtype;
  search::Candidate layout;
};

using search::sizes_of;

void PrintTo(const OnCards& c, std::ostream* out) {
  *out << c.name << " " << c.dtype;
}

constexpr std::string_view kModel =
    "[model]\nfamily = \"llama\"\nlayers = 4\nembed = 32\nheads = 4\nkv_heads = 2\nffn = 48\nvocab = 66\n";

int64_t sum_of(const std::vector<std::string>& column) {
  int64_t sum = 0;
  for (const std::string& cell : column) sum += std::stoll(cell);
  return sum;
}

class DeviceMemoryOfACluster : public testing::TestWithParam<OnCards> {};

TEST_P(DeviceMemoryOfACluster, IsThatOfThePlanAndTheSearch) {
  const std::string file = source_folder() + "/clusters/h200_node.toml";
  const std::vector<std::string> sets = {"train.dtype=" + GetParam().dtype, "parallel.device=cuda",
                                         "parallel.threads=1", "train.sequence=16", "train.global_batch=8"};
  const config::Settings given =
      config::resolve(config::read_text(kModel, "run.toml", models::catalog(), sets), 8).settings;
  const search::Candidate& layout = GetParam().layout;

  // Messages about GPU memory, of the command and of a search.
  const TemporaryFolder folder;
  std::ofstream(folder / "run.toml") << kModel << search::as_toml(given, layout);
  const Ended planned = run_kintsugi(
      folder.path(), fmt::format("plan run.toml --cluster {} --csv plan.csv --set {}", file, fmt::join(sets, " ")));
  ASSERT_EQ(planned.code, 0) << planned.err;
  auto columns = columns_of(base::read_file(folder / "plan.csv"));
  const int64_t bytes = search::bytes_of(given, layout);
  const auto tried = search::try_candidate(given, layout, simulate::read_cluster(file), INT64_MAX);
  ASSERT_TRUE(tried);
  EXPECT_EQ(tried->bytes, bytes);
  int64_t most = 0;
  for (const std::string& total : columns["total"]) most = std::max<int64_t>(most, std::stoll(total));
  EXPECT_EQ(most, bytes);
  EXPECT_NE(planned.out.find("  memory        " + base::format_bytes(static_cast<uint64_t>(bytes)) + " of 140 GiB on"),
            std::string::npos)
      << planned.out;

  // The memory that the same run uses.
  config::Settings s = search::settings_of(given, layout);
  s.parallel.device = "emulated";
  const int64_t before = allocated().device;
  train::LayoutRun run(s);
  ASSERT_EQ(columns["total"].size(), static_cast<size_t>(run.ranks()));
  EXPECT_EQ(allocated().device - before, sum_of(columns["total"]));
  int64_t largest = 0;
  for (int rank = 0; rank < run.ranks(); ++rank) {
    const program::Program& p = run.executor(rank).program();
    EXPECT_EQ(std::to_string(p.bytes()), columns["total"][static_cast<size_t>(rank)]) << rank;
    EXPECT_EQ(std::to_string(p.arena_bytes), columns["arena"][static_cast<size_t>(rank)]) << rank;
    largest = std::max(largest, p.bytes());
  }
  EXPECT_EQ(largest, bytes);
  for (int64_t step = 0; step < 2; ++step)
    run.step(step, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, step, m, batch); });
  EXPECT_EQ(allocated().device - before, sum_of(columns["total"]));
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, DeviceMemoryOfACluster,
    testing::Values(OnCards{"one", "fp32", {.micro_batch = 2}},
                    OnCards{"data", "bf16", {.sizes = sizes_of({.data = 2}), .micro_batch = 2}},
                    OnCards{"zero_3", "bf16", {.sizes = sizes_of({.data = 2}), .zero = 3, .micro_batch = 2}},
                    OnCards{"tensor", "fp32", {.sizes = sizes_of({.tensor = 2}), .micro_batch = 2}},
                    OnCards{"pipeline", "bf16", {.sizes = sizes_of({.pipe = 2}), .micro_batch = 2}},
                    OnCards{"recompute", "fp32", {.micro_batch = 4, .recompute = config::Recomputed::layers}},
                    OnCards{"all",
                            "bf16",
                            {.sizes = sizes_of({.data = 2, .tensor = 2, .pipe = 2}),
                             .zero = 1,
                             .schedule = "interleaved",
                             .chunks = 2,
                             .recompute = config::Recomputed::layers}}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace kintsugi::tests::device_memory_test
