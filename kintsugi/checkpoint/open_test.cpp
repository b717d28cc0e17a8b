// Checkpoints opened and checked by many ranks together.
#include "kintsugi/checkpoint/open.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <numeric>
#include <thread>

#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/comm/run_ranks.h"

namespace kintsugi::checkpoint::open_test {
namespace {

namespace fs = std::filesystem;
using tensor::DType;

constexpr int kRanks = 3;

// The result of f(communicator of all) on each rank: a step, or an error.
template <typename F>
std::vector<std::string> on_ranks(const F& f, const fs::path& scratch) {
  std::vector<std::string> texts(kRanks);
  const auto worlds = comm::thread_worlds(kRanks, {.time_limit = std::chrono::seconds(20)});
  comm::run_ranks(worlds, [&](comm::World& world) {
    const auto all = world.group(std::vector<int>{0, 1, 2});
    std::string& text = texts[static_cast<size_t>(world.rank())];
    std::string opened;
    text = error_of(
        [&] {
          const std::unique_ptr<CheckpointReader> reader = f(*all);
          opened = reader ? "step " + std::to_string(reader->step()) : "none";
        },
        scratch);
    if (text.empty()) text = opened;
  });
  return texts;
}

std::vector<std::string> three(const std::string& text) {
  return std::vector<std::string>(kRanks, text);
}

void damage(const fs::path& file, size_t from_end) {
  std::string text = base::read_file(file);
  char& c = text[text.size() - from_end];
  c = static_cast<char>(c ^ 1);
  put(file, text);
}

// Ten tensors of 1 to 10 bytes, t0 to t9.
fs::path save_ten(const fs::path& run) {
  std::vector<uint8_t> data(10);
  std::iota(data.begin(), data.end(), uint8_t{1});
  CheckpointWriter writer(run, 1);
  for (int64_t i = 0; i < 10; ++i)
    writer.add({"t" + std::to_string(i), {{{"a", i + 1}}, DType::u8}, Kind::weight, {}, {}},
               std::as_bytes(std::span(data)).first(static_cast<size_t>(i) + 1));
  writer.write();
  return writer.finish({});
}

}  // namespace

TEST(Open, TheNewestWholeOneOnAllRanks) {
  ScratchFolder scratch;
  const auto newest = [&] {
    return on_ranks([&](comm::Communicator& all) { return open_newest_whole(scratch / "run", all); }, scratch.path());
  };
  const auto open = [&](const fs::path& path) {
    return on_ranks([&](comm::Communicator& all) { return open_checkpoint(path, all); }, scratch.path());
  };
  EXPECT_EQ(newest(), three("none"));
  EXPECT_EQ(open(scratch / "run"),
            three("[checkpoint] there is no folder \"run\"; a checkpoint or a run's folder is needed"));
  const fs::path one = save_small(scratch / "run", 1), two = save_small(scratch / "run", 2);
  EXPECT_EQ(newest(), three("step 2"));
  EXPECT_EQ(open(scratch / "run"), three("step 2"));
  EXPECT_EQ(open(one), three("step 1"));
  damage(two / "rank_00000.safetensors", 1);  // one rank finds it
  EXPECT_EQ(newest(), three("step 1"));
  EXPECT_EQ(open(two), three("step 2"));  // it is looked at when it is read
  fs::remove(one / "index.json");         // every rank finds it
  EXPECT_EQ(newest(), three("none"));
  EXPECT_EQ(open(scratch / "run"),
            three("[checkpoint] \"run\" holds no whole checkpoint; a checkpoint or a run's folder is needed"));
  put(scratch / "file", "");
  EXPECT_EQ(open(scratch / "file"), three("[checkpoint] \"file\" is a file; a checkpoint or a run's folder is needed"));
}

// Ranks 0 and 1 see a different folder than rank 2, as without a shared file system.
TEST(Open, RanksThatSeeOtherCheckpointsAreTold) {
  ScratchFolder scratch;
  const auto open = [&] {
    return on_ranks(
        [&](comm::Communicator& all) {
          return open_newest_whole(scratch / ("run" + std::to_string(all.rank() / 2)), all);
        },
        scratch.path());
  };
  save_small(scratch / "run0", 3);
  save_small(scratch / "run0", 4);
  save_small(scratch / "run1", 2);
  EXPECT_EQ(open(),
            three("[checkpoint] rank 2 has another list of checkpoints than rank 0: \"run1: steps 2\" instead of "
                  "\"run0: steps 3, 4\"; start all ranks with one"));
  save_small(scratch / "run1", 3);
  EXPECT_EQ(open()[0].substr(0, 50), "[checkpoint] rank 2 has another checkpoint than ra");
  fs::remove_all(scratch / "run0");
  EXPECT_EQ(open(), three("[checkpoint] rank 2 has another list of checkpoints than rank 0: \"run1: steps 2, 3\" "
                          "instead of \"run0: none\"; start all ranks with one"));
}

// A run saves and removes while others read: there is always a newest checkpoint, and an open one stays readable.
TEST(Open, WhileARunSavesAndRemoves) {
  ScratchFolder scratch;
  save_small(scratch / "run", 1);
  std::atomic<bool> stop{false};
  std::thread run([&] {
    for (int64_t step = 2; !stop; ++step) {
      save_small(scratch / "run", step);
      prune(scratch / "run", 1);
    }
  });
  const auto self = comm::self_communicator();
  std::string wrong;
  for (int i = 0; i < 100 && wrong.empty(); ++i)
    wrong = error_of([&] {
      const auto reader = open_checkpoint(scratch / "run", *self);
      while (i % 20 == 0 && fs::exists(reader->folder())) std::this_thread::yield();
      reader->verify();
      reader->config();
    });
  stop = true;
  run.join();
  EXPECT_EQ(wrong, "");
}

TEST(Open, SharesOfTheChecksAreAllOfThem) {
  ScratchFolder scratch;
  const fs::path folder = save_ten(scratch.path());
  const fs::path file = folder / "rank_00000.safetensors";
  const std::string whole = base::read_file(file);
  for (const int shares : {1, 2, 3, 7, 64}) {
    std::vector<size_t> bytes(static_cast<size_t>(shares), 0);
    for (size_t tensor = 0, end = 0; tensor < 10; ++tensor) {
      end += tensor + 1;
      damage(file, 56 - end);
      const CheckpointReader reader(folder);
      int found = 0;
      for (int share = 0; share < shares; ++share) {
        if (error_of([&] { reader.verify(share, shares, nullptr); }).empty()) continue;
        ++found;
        bytes[static_cast<size_t>(share)] += tensor + 1;
      }
      EXPECT_EQ(found, 1) << tensor << " of " << shares;
      put(file, whole);
    }
    EXPECT_LE(*std::max_element(bytes.begin(), bytes.end()), 55 / bytes.size() + 10);
  }
}

TEST(Open, OnlyWhatIsWantedIsCheckedAndOnlyWhatIsTrustedIsNot) {
  ScratchFolder scratch;
  const fs::path folder = save_ten(scratch.path());
  damage(folder / "rank_00000.safetensors", 1);   // of t9
  damage(folder / "rank_00000.safetensors", 12);  // of t8
  const auto is = [](const char* name) { return [name](std::string_view other) { return other == name; }; };
  const auto error = [&](const CheckpointReader& reader, const char* name, size_t bytes) {
    std::vector<std::byte> out(bytes);
    return error_of([&] { reader.read({name, {}, {}}, DType::u8, out); }, scratch.path());
  };
  const CheckpointReader reader(folder);
  reader.verify(0, 1, is("t7"));
  EXPECT_NE(error_of([&] { reader.verify(0, 1, is("t8")); }), "");
  reader.trust(is("t9"));
  EXPECT_EQ(error(reader, "t9", 10), "");
  reader.verify(0, 1, is("t9"));
  EXPECT_TRUE(
      error(reader, "t8", 9)
          .starts_with(
              "[checkpoint] \"step_00000001/rank_00000.safetensors\": tensor \"t8\" is damaged: its checksum is "));
  reader.trust(nullptr);
  EXPECT_EQ(error(reader, "t8", 9), "");
}

}  // namespace kintsugi::checkpoint::open_test
