// Work skipped by a signal between two steps is done when the run resumes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <chrono>
#include <fstream>
#include <thread>

#include "kintsugi/checkpoint/folder.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/models/models.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::interrupted_test {
namespace {

// Requests a stop during a validation or while texts are generated, and blocks it until then.
class StopsWithin : public Watcher {
 public:
  StopsWithin(int64_t step, bool in_texts) : step_(step), in_texts_(in_texts) {}
  void step(const train::Metrics& m, int64_t steps) override {
    Watcher::step(m, steps);
    done_ = m.step;
  }
  void validating(int64_t, int64_t) override { hold_up(!in_texts_); }
  void sampling(int64_t, int64_t) override { hold_up(in_texts_); }

 private:
  void hold_up(bool here) {
    if (!here || done_ + 1 != step_) return;
    stop = 1;
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
  }

  int64_t step_, done_ = 0;
  bool in_texts_;
};

class Interrupted : public testing::Test {
 protected:
  Interrupted() {
    std::ofstream text(folder / "text.txt");
    for (int i = 0; i < 400; ++i) text << "Line " << i * i % 97 << " of a text that a model can learn.\n";
    text.close();
    std::ofstream(folder / "run.toml")
        << "[model]\nlayers = 1\nembed = 16\nheads = 2\n[data]\ntrain = \"corpus/train\"\n"
           "validation = \"corpus/validation\"\n[train]\nsteps = 8\nglobal_batch = 4\nsequence = 16\n"
           "evaluate_every = 4\nevaluate_batches = 5\nsample_every = 4\nsample_length = 6\nprompts = [\"Line\"]\n"
           "[parallel]\nthreads = 1\n";
    EXPECT_EQ(run_kintsugi(folder.path(), "prepare text.txt --tokenizer bytes --validation 0.2 --output corpus").code,
              0);
  }

  train::Outcome train(const std::string& name, bool resume, Watcher& watcher) const {
    const std::vector<std::string> sets = {"train.folder=" + (folder / name).string(),
                                           "data.train=" + (folder / "corpus/train").string(),
                                           "data.validation=" + (folder / "corpus/validation").string()};
    return train_here({.config = config::load((folder / "run.toml").string(), models::catalog(), sets, 2),
                       .resume = resume ? train::Resume::yes : train::Resume::no,
                       .stop = &watcher.stop},
                      watcher);
  }

  TemporaryFolder folder;
};

TEST_F(Interrupted, ValidationAndTextsAreMadeUpFor) {
  Watcher whole;
  ASSERT_TRUE(train("whole", false, whole).finished);
  const auto want = metrics_of(folder / "whole");
  ASSERT_EQ(want.size(), 8u);
  for (const int64_t step : {4, 8})
    for (const bool in_texts : {false, true}) {
      const std::string name = fmt::format("{}{}", in_texts ? "texts" : "validation", step);
      SCOPED_TRACE(name);
      StopsWithin stopped(step, in_texts);
      EXPECT_EQ(train(name, false, stopped).step, step);
      auto got = metrics_of(folder / name);
      ASSERT_EQ(static_cast<int64_t>(got.size()), step);
      EXPECT_NE(got.back(), want[got.size() - 1]);
      Watcher resumed;
      EXPECT_TRUE(train(name, true, resumed).finished);
      EXPECT_EQ(metrics_of(folder / name), want);
      EXPECT_EQ(checkpoint::read_best(folder / name), checkpoint::read_best(folder / "whole"));
      EXPECT_TRUE(tensors_of(checkpoint::list(folder / name).back().folder) ==
                  tensors_of(checkpoint::list(folder / "whole").back().folder));
    }
}

}  // namespace
}  // namespace kintsugi::tests::interrupted_test
