// Checkpoints on the emulated device: a consistent snapshot while steps continue, within planned memory; and failures
// during a save.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/background_save.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/run_ranks.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/device/emulated/emulated.h"
#include "tests/device_layouts.h"
#include "tests/layouts.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::device_saves_test {
namespace {

using checkpoint::BackgroundSave;
using device::emulate::allocated;

const checkpoint::Contents kContents = {.state = "{\"seed\":3}", .config = "", .tokenizer = ""};

struct Ranks {
  explicit Ranks(const DeviceLayout& layout) : s(settings_of(layout)), run(std::make_unique<train::LayoutRun>(s)) {}
  void step(int64_t number) {
    run->step(number, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, number, m, batch); });
  }
  template <typename F>
  void on_ranks(const F& f) {
    const auto worlds = comm::thread_worlds(run->ranks(), {.time_limit = std::chrono::seconds(60)});
    std::vector<int> ranks;
    for (int r = 0; r < run->ranks(); ++r) ranks.push_back(r);
    comm::run_ranks(worlds, [&](comm::World& world) { f(world.rank(), *world.group(ranks)); });
  }

  config::Settings s;
  std::unique_ptr<train::LayoutRun> run;
};

class DeviceSaves : public testing::TestWithParam<DeviceLayout> {};

TEST_P(DeviceSaves, AreOfTheirInstantWhileStepsGoOn) {
  const checkpoint::ScratchFolder folder;
  Ranks ranks(GetParam());
  const auto planned = compile::compile({.settings = ranks.s, .kernels = *compile::kernels_of(ranks.s)});
  const int64_t before = allocated().pinned;
  std::vector<std::unique_ptr<BackgroundSave>> saves;
  int64_t bytes = 0;
  for (int rank = 0; rank < ranks.run->ranks(); ++rank) {
    saves.push_back(std::make_unique<BackgroundSave>(ranks.run->executor(rank)));
    const program::Program& p = planned[static_cast<size_t>(ranks.run->executor(rank).program().stage)];
    bytes += checkpoint::snapshot_places(p, rank).bytes;
  }
  EXPECT_EQ(allocated().pinned - before, bytes);
  const int64_t held = allocated().pinned;
  for (int64_t step = 0; step < 2; ++step) {
    ranks.step(2 * step);
    ranks.on_ranks([&](int rank, comm::Communicator& all) {
      checkpoint::save_states(ranks.run->executor(rank), all, folder / "waits", step + 1, kContents);
      saves[static_cast<size_t>(rank)]->begin(all, folder / "goes_on", step + 1, kContents);
    });
    ranks.step(2 * step + 1);
    EXPECT_TRUE(saves[0]->under_way());
    EXPECT_EQ(checkpoint::list(folder / "goes_on").size(), static_cast<size_t>(step));  // none that is not whole
    if (step == 0) {
      ranks.on_ranks([&](int rank, comm::Communicator& all) {
        EXPECT_EQ(saves[static_cast<size_t>(rank)]->finish(all), checkpoint::step_folder(folder / "goes_on", 1));
      });
    } else {  // as after an error
      ranks.on_ranks([&](int rank, comm::Communicator&) {
        EXPECT_EQ(saves[static_cast<size_t>(rank)]->finish_alone().has_value(), rank == 0);
      });
    }
    EXPECT_FALSE(saves[0]->under_way());
    EXPECT_TRUE(tensors_of(checkpoint::step_folder(folder / "waits", step + 1)) ==
                tensors_of(checkpoint::step_folder(folder / "goes_on", step + 1)));
  }
  EXPECT_EQ(allocated().pinned, held);
}

INSTANTIATE_TEST_SUITE_P(Layouts, DeviceSaves,
                         testing::Values(DeviceLayout{"gpt", "bf16", ""}, DeviceLayout{"gpt", "bf16", "data=2 zero=1"},
                                         DeviceLayout{"gpt", "bf16", "data=2 zero=3"},
                                         DeviceLayout{"gpt", "bf16", "tensor=2 sequence_parallel"},
                                         DeviceLayout{"gpt", "bf16", "pipe=2 schedule=1f1b"},
                                         DeviceLayout{"gpt", "bf16", "offload=optimizer"},
                                         DeviceLayout{"lenet", "bf16", "data=2 zero=3"},
                                         DeviceLayout{"unet", "fp32", "space=2"}));

// As if rank 1 had not finished: what rank 0 has written is not a checkpoint, and is removed.
TEST(DeviceSavesAfterErrors, AreNoCheckpointWithoutThePartOfEachRank) {
  const checkpoint::ScratchFolder folder;
  Ranks ranks({"gpt", "bf16", "data=2 zero=1"});
  BackgroundSave first(ranks.run->executor(0));
  auto second = std::make_unique<BackgroundSave>(ranks.run->executor(1));
  ranks.on_ranks([&](int rank, comm::Communicator& all) {
    (rank == 0 ? first : *second).begin(all, folder / "run", 1, kContents);
  });
  while (!second->written()) std::this_thread::yield();
  std::filesystem::remove(checkpoint::part_folder(folder / "run", 1) / "rank_00001.json");
  EXPECT_EQ(first.finish_alone(), std::nullopt);
  EXPECT_TRUE(checkpoint::list(folder / "run").empty());
  EXPECT_FALSE(std::filesystem::exists(checkpoint::part_folder(folder / "run", 1)));
}

class RunsThatSave : public testing::Test {
 protected:
  std::string sets(const std::string& more) const {
    return "train " + files.toml() + " --set parallel.device=emulated train.steps=6 checkpoint.every=1 train.folder=" +
           files.folder("run").string() + " " + more;
  }
  Ended command(const std::string& arguments, const std::string& before = ":") const {
    return run_kintsugi(files.file("."), arguments, before);
  }

  RunFiles files;
};

TEST_F(RunsThatSave, EndWhereThatFails) {
  const Ended e = command(sets("train.evaluate_every=6"), "ulimit -f 40");
  EXPECT_EQ(e.code, 1);
  EXPECT_TRUE(e.err.starts_with("error: [checkpoint] step 1 is not saved, earlier checkpoints are untouched: "))
      << e.err;
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  EXPECT_TRUE(checkpoint::list(files.folder("run")).empty());
}

TEST_F(RunsThatSave, FinishASaveBeforeTheyEndWithAnError) {
  const Ended e = command(sets("train.learning_rate=1e30 train.warmup_steps=0 train.evaluate_every=6"));
  EXPECT_EQ(e.code, 1);
  EXPECT_EQ(std::count(e.err.begin(), e.err.end(), '\n'), 1) << e.err;
  ASSERT_FALSE(checkpoint::list(files.folder("run")).empty()) << e.err;
  const std::filesystem::path newest = checkpoint::list(files.folder("run")).back().folder;
  EXPECT_NE(e.err.find("the newest checkpoint, " + newest.string() + ", "), std::string::npos) << e.err;
  EXPECT_TRUE(checkpoint::newest_whole(files.folder("run")).has_value());
}

TEST_F(RunsThatSave, GoOnWithoutTheMemory) {
  const Ended e = command(sets("train.steps=2"), "export KINTSUGI_EMULATE=pinned=4250000");
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_NE(e.err.find("the run waits for each checkpoint until it is written"), std::string::npos) << e.err;
  EXPECT_EQ(checkpoint::list(files.folder("run")).back().step, 2);
}

}  // namespace
}  // namespace kintsugi::tests::device_saves_test
