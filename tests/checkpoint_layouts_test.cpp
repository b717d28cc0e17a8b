// Checkpoints are independent of the layout: saved by any ranks, loaded by any others, with equal bits.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/checkpoint/open.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/checkpoint/scratch_test.h"
#include "kintsugi/checkpoint/states.h"
#include "kintsugi/comm/run_ranks.h"
#include "tests/forwarding_communicator.h"
#include "tests/layouts.h"

namespace kintsugi::tests::checkpoint_layouts_test {
namespace {

namespace fs = std::filesystem;
using checkpoint::Load;
using checkpoint::ScratchFolder;

// Sizes that most axes do not divide: a vocabulary of 65, 3 key-value heads with 2 query heads each.
config::Settings model_of(const std::string& family, const std::string& dtype, const std::string& layout) {
  config::Settings s = small_model(family, dtype);
  s.model.heads = 6;
  s.model.kv_heads = 3;
  s.model.ffn = 33;
  s.train.global_batch = 24;
  s.train.steps = 10;
  set_layout(s, layout);
  s.train.micro_batch = 12 / s.parallel.data;
  // Low-precision weights rounded from fp32, as in training.
  if (dtype == "bf16" || dtype == "fp16") s.parallel.device = "cpu";
  return s;
}

// The ranks of a model in a layout.
struct Ranks {
  explicit Ranks(const config::Settings& settings) : s(settings), run(s) {}
  Ranks(const std::string& family, const std::string& dtype, const std::string& layout)
      : Ranks(model_of(family, dtype, layout)) {}

  double step(int64_t number) {
    run.step(number, 1e-2, [&](int64_t m, samples::BatchMemory& batch) { draw_batch(s, number, m, batch); });
    return run.loss();
  }

  // Calls f(executor, communicator of all) on every rank, and returns the errors thrown.
  template <typename F>
  std::vector<std::string> on_ranks(const F& f) {
    const auto worlds = comm::thread_worlds(run.ranks(), {.time_limit = std::chrono::seconds(60)});
    std::vector<int> ranks;
    for (int r = 0; r < run.ranks(); ++r) ranks.push_back(r);
    std::vector<std::string> errors(ranks.size());
    comm::run_ranks(worlds, [&](comm::World& world) {
      const auto all = world.group(ranks);
      auto& executor = const_cast<run::Executor&>(run.executor(world.rank()));  // `run` is ours
      errors[static_cast<size_t>(world.rank())] = checkpoint::error_of([&] { f(executor, *all); });
    });
    return errors;
  }

  fs::path save(const fs::path& folder, int64_t step) {
    fs::path saved;
    const auto errors = on_ranks([&](run::Executor& executor, comm::Communicator& all) {
      const fs::path place = checkpoint::save_states(executor, all, folder, step,
                                                     {.state = "{\"seed\":3}", .config = "", .tokenizer = ""});
      if (all.rank() == 0) saved = place;
    });
    EXPECT_EQ(errors, nothing());
    return saved;
  }

  std::vector<std::string> load(const fs::path& folder, Load what = Load::everything) {
    return on_ranks([&](run::Executor& executor, comm::Communicator& all) {
      checkpoint::load_states(executor, all, *checkpoint::open_checkpoint(folder, all), what);
    });
  }

  // Everything that a checkpoint must restore, by name; numbers of every rank.
  Numbers states() const {
    Numbers all = run.states(program::StateKind::weight);
    all.merge(run.states(program::StateKind::optimizer));
    for (const program::StateInfo& info : run.program().states) {
      if (info.kind != program::StateKind::statistic || !info.saved) continue;
      for (int rank = 0; rank < run.ranks(); ++rank) {
        const std::vector<double> x = {run.executor(rank).number(info.name)};
        EXPECT_EQ(all.try_emplace(info.name, x).first->second, x) << info.name << " on rank " << rank;
      }
    }
    return all;
  }

  std::vector<std::string> nothing() const { return same(""); }
  std::vector<std::string> same(const std::string& text) const {
    return std::vector<std::string>(static_cast<size_t>(run.ranks()), text);
  }

  config::Settings s;
  train::LayoutRun run;
};

// "" if both have the same bits under the same names.
std::string different(const Numbers& a, const Numbers& b) {
  if (a.size() != b.size()) return fmt::format("{} states, not {}", a.size(), b.size());
  for (const auto& [name, x] : a) {
    const auto other = b.find(name);
    if (other == b.end()) return "there is no " + name;
    if (x.size() != other->second.size()) return "another size of " + name;
    if (std::memcmp(x.data(), other->second.data(), x.size() * sizeof(double)) != 0) return "other bits in " + name;
  }
  return "";
}

// "" if the files of a checkpoint contain each element of each tensor once; and the bytes of each file.
std::string not_once(const fs::path& folder, std::map<std::string, int64_t>& bytes) {
  const checkpoint::CheckpointReader reader(folder);
  for (const auto& [name, tensor] : reader.index().tensors) {
    std::vector<int> times(static_cast<size_t>(tensor.type.shape.elements()), 0);
    const checkpoint::Box whole = checkpoint::whole_box(tensor.type.shape);
    for (const checkpoint::StoredPiece& piece : tensor.pieces) {
      bytes[piece.file] += piece.part.flat.size() * size_of(tensor.type.dtype);
      checkpoint::for_each_common_run({whole, checkpoint::whole_range(whole)}, piece.part,
                                      [&](int64_t at, int64_t, int64_t count) {
                                        for (int64_t i = at; i < at + count; ++i) ++times[static_cast<size_t>(i)];
                                      });
    }
    for (size_t i = 0; i < times.size(); ++i)
      if (times[i] != 1) return fmt::format("element {} of {} is stored {} times", i, name, times[i]);
  }
  return "";
}

const std::vector<std::string>& layouts() {
  static const std::vector<std::string> list = {"data=2 tensor=2",
                                                "tensor=4",
                                                "data=4 zero=3",
                                                "data=3 zero=1",
                                                "data=2 tensor=2 zero=2 sequence_parallel",
                                                "data=2 context=2 zero=3 shard_context",
                                                "data=1"};
  return list;
}

// Two steps in one layout, saved; loaded in all others, where the next step has the same loss.
void from_one_to_all(const std::string& family, const std::string& dtype, const std::string& from, double tolerance) {
  ScratchFolder scratch;
  Ranks source(family, dtype, from);
  for (int64_t i = 0; i < 2; ++i) source.step(i);
  const fs::path folder = source.save(scratch.path(), 2);
  EXPECT_EQ(folder, scratch / "step_00000002");
  const Numbers saved = source.states();
  EXPECT_EQ(checkpoint::CheckpointReader(folder).state(), R"({"seed":3})");
  const double next = source.step(2);
  for (const std::string& layout : layouts()) {
    Ranks other(family, dtype, layout);
    other.step(7);  // existing values are replaced
    EXPECT_EQ(other.load(scratch.path()), other.nothing()) << layout;
    EXPECT_EQ(different(other.states(), saved), "") << layout;
    EXPECT_NEAR(other.step(2), next, tolerance * next) << layout;
  }
}

// Calls a function after the first wait of a rank.
class Meddling : public ForwardingCommunicator {
 public:
  Meddling(comm::Communicator& inner, std::function<void()> then)
      : ForwardingCommunicator(inner), then_(std::move(then)) {}

 protected:
  void waited() override {
    if (then_) std::exchange(then_, nullptr)();
  }

 private:
  std::function<void()> then_;
};

}  // namespace

TEST(CheckpointLayouts, SavedAtData2Tensor2InFp64) {
  from_one_to_all("gpt", "fp64", "data=2 tensor=2", 1e-12);
}

TEST(CheckpointLayouts, SavedAtData2Tensor2InBf16WithMasters) {
  from_one_to_all("gpt", "bf16", "data=2 tensor=2", 1e-2);
}

TEST(CheckpointLayouts, SavedAtZero3Of4) {
  from_one_to_all("llama", "fp64", "data=4 zero=3", 1e-12);
}

TEST(CheckpointLayouts, SavedAtZero1Of3InFp16WithMastersAndLossScale) {
  from_one_to_all("llama", "fp16", "data=3 zero=1", 1e-2);
}

TEST(CheckpointLayouts, SavedByOneRank) {
  from_one_to_all("gpt", "fp32", "data=1", 1e-6);
}

// States that share no bucket with others, that have other dims than their weight, and averages.
TEST(CheckpointLayouts, StatesOfEveryOptimizer) {
  for (const std::string optimizer : {"lamb", "lars", "muon", "adafactor", "adadelta", "adamw", "adamw8", "adamw16"}) {
    SCOPED_TRACE(optimizer);
    const auto settings = [&](const std::string& layout) {
      config::Settings s = model_of("llama", "fp64", layout);
      s.train.optimizer = optimizer;
      s.train.ema_decay = optimizer == "adamw" ? 0.9 : 0.0;
      return s;
    };
    ScratchFolder scratch;
    Ranks source(settings("data=2 tensor=2 zero=1"));
    for (int64_t i = 0; i < 2; ++i) source.step(i);
    source.save(scratch.path(), 2);
    const Numbers saved = source.states();
    source.step(2);
    const double next = source.step(3);
    for (const std::string layout : {"data=1", "data=4 zero=3", "tensor=2"}) {
      Ranks other(settings(layout));
      other.step(7);
      EXPECT_EQ(other.load(scratch.path()), other.nothing()) << layout;
      EXPECT_EQ(different(other.states(), saved), "") << layout;
      other.step(2);
      EXPECT_NEAR(other.step(3), next, 1e-9 * next) << layout;
    }
  }
}

TEST(CheckpointLayouts, EachElementIsWrittenOnceAndEachRankWritesAsMuch) {
  for (const std::string& layout : layouts()) {
    ScratchFolder scratch;
    Ranks run("gpt", "bf16", layout);
    run.step(0);
    std::map<std::string, int64_t> bytes;
    const fs::path folder = run.save(scratch.path(), 1);
    EXPECT_EQ(not_once(folder, bytes), "") << layout;
    ASSERT_EQ(static_cast<int>(bytes.size()), run.run.ranks()) << layout;
    int64_t stored = 0, whole = 0, most = 0;
    for (const auto& [file, n] : bytes) {
      stored += n;
      most = std::max(most, n);
    }
    std::set<std::string> names;
    const checkpoint::CheckpointReader reader(folder);
    for (const auto& [name, tensor] : reader.index().tensors) {
      whole += tensor.type.bytes();
      names.insert(name);
    }
    EXPECT_EQ(stored, whole) << layout;
    EXPECT_LE(static_cast<double>(most), 1.6 * static_cast<double>(whole) / run.run.ranks()) << layout;
    // Weights equal their masters, and there is no separate master.
    for (const program::StateInfo& s : run.run.program().states)
      EXPECT_EQ(names.contains(s.name), s.saved && !s.name.ends_with(".master")) << s.name;
  }
}

TEST(CheckpointLayouts, WeightsAlone) {
  ScratchFolder scratch;
  Ranks source("gpt", "bf16", "data=2 tensor=2");
  for (int64_t i = 0; i < 2; ++i) source.step(i);
  source.save(scratch.path(), 2);
  Ranks other("gpt", "bf16", "data=3 zero=1"), fresh("gpt", "bf16", "data=1");
  EXPECT_EQ(other.load(scratch.path(), Load::weights), other.nothing());
  EXPECT_EQ(different(other.run.states(program::StateKind::weight), source.run.states(program::StateKind::weight)), "");
  for (const auto& [name, x] : other.run.states(program::StateKind::optimizer)) {
    const Numbers& from = (name.ends_with(".master") ? source : fresh).run.states(program::StateKind::optimizer);
    EXPECT_EQ(different({{name, x}}, {{name, from.at(name)}}), "");
  }
}

TEST(CheckpointLayouts, ARankThatCannotWriteEndsTheSaveForAll) {
  ScratchFolder scratch;
  Ranks run("gpt", "fp32", "data=2 tensor=2");
  run.save(scratch.path(), 1);
  const fs::path file = scratch / ".part-step_00000002/rank_00002.safetensors";
  const auto errors = run.on_ranks([&](run::Executor& executor, comm::Communicator& all) {
    Meddling meddling(all, [&] {
      if (all.rank() == 2) fs::create_directory(file);
    });
    checkpoint::save_states(executor, meddling, scratch.path(), 2, {});
  });
  EXPECT_EQ(errors,
            run.same("[checkpoint] rank 2: step 2 is not saved, earlier checkpoints are untouched: cannot write \"" +
                     file.string() + "\": Is a directory"));
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), {}), 1);  // step 1
  const fs::path folder = run.save(scratch.path(), 2);
  EXPECT_EQ(folder, scratch / "step_00000002");
}

TEST(CheckpointLayouts, Rank0ThatCannotFinishEndsTheSaveForAll) {
  ScratchFolder scratch;
  Ranks run("gpt", "fp32", "tensor=4");
  const fs::path file = scratch / ".part-step_00000002/index.json";
  const auto errors = run.on_ranks([&](run::Executor& executor, comm::Communicator& all) {
    Meddling meddling(all, [&] {
      if (all.rank() == 3) fs::create_directory(file);
    });
    checkpoint::save_states(executor, meddling, scratch.path(), 2, {});
  });
  EXPECT_EQ(errors,
            run.same("[checkpoint] rank 0: step 2 is not saved, earlier checkpoints are untouched: cannot write \"" +
                     file.string() + "\": Is a directory"));
  EXPECT_TRUE(fs::is_empty(scratch.path()));
}

TEST(CheckpointLayouts, ARankThatDiesWhileOthersWrite) {
  ScratchFolder scratch;
  Ranks run("gpt", "fp32", "data=2 tensor=2");
  const auto save = [&](run::Executor& executor, comm::Communicator& all) {
    Meddling meddling(all, [&] {
      if (all.rank() == 1) throw base::InternalError("test", "gone");
    });
    checkpoint::save_states(executor, meddling, scratch.path(), 2, {});
  };
  EXPECT_THROW(run.on_ranks(save), base::InternalError);  // of the rank; the others have ended too
  EXPECT_TRUE(checkpoint::list(scratch.path()).empty());
  run.save(scratch.path(), 2);
  EXPECT_EQ(std::distance(fs::directory_iterator(scratch.path()), {}), 1);
}

TEST(CheckpointLayouts, ErrorsOfLoading) {
  ScratchFolder scratch;
  Ranks run("gpt", "fp32", "data=2 tensor=2");
  const fs::path folder = run.save(scratch.path(), 1);
  const std::string shown = "[checkpoint] \"" + folder.string() + "\"";
  Ranks other("llama", "fp32", "data=3 zero=1");
  EXPECT_EQ(other.load(folder),
            other.same(shown + " has no tensor \"layer0.ffn.gate.weight\"; the nearest is \"layer0.ffn.down.weight\""));
  config::Settings wider = run.s;
  wider.model.vocab = 66;
  Ranks misshaped(wider);
  EXPECT_EQ(misshaped.load(folder),
            misshaped.same(shown + " holds embedding.table [vocab:65 embed:24], the model needs [vocab:66 embed:24]: "
                                   "[model] must be that of the checkpoint"));

  // Each rank reads only its own part; a corrupt bit in any part is the same error on all ranks.
  const fs::path file = folder / "rank_00003.safetensors";
  std::string text = base::read_file(file);
  text.back() = static_cast<char>(text.back() ^ 1);
  checkpoint::put(file, text);
  const auto damaged = run.load(folder);
  for (const std::string& error : damaged) EXPECT_EQ(error, damaged[0]);
  EXPECT_TRUE(damaged[0].starts_with("[checkpoint] rank ")) << damaged[0];
  EXPECT_NE(damaged[0].find("is damaged: its checksum is "), std::string::npos) << damaged[0];
  EXPECT_EQ(run.load(scratch.path()),
            run.same("[checkpoint] \"" + scratch.path().string() +
                     "\" holds no whole checkpoint; a checkpoint or a run's folder is needed"));
}

}  // namespace kintsugi::tests::checkpoint_layouts_test
