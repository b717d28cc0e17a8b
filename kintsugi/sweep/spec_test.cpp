#include "kintsugi/sweep/spec.h"

#include <gtest/gtest.h>

#include <set>

#include "kintsugi/base/error.h"

namespace kintsugi::sweep::spec_test {
namespace {

Spec spec_of(const std::string& search, const std::string& sweep = "", const std::string& set = "") {
  return read_spec("[sweep]\nfolder = \"s\"\n" + sweep + "\n[set]\n" + set + "\n[search]\n" + search, "sweep.toml");
}

std::string error_of(const std::string& search, const std::string& sweep = "", const std::string& set = "") {
  try {
    candidates(spec_of(search, sweep, set));
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(SweepSpec, GridIsEveryCombination) {
  const Spec spec = spec_of("\"train.learning_rate\" = [1e-3, 2e-3]\nmodel.layers = {from = 1, to = 5, step = 2}");
  const std::vector<Values> all = candidates(spec);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_EQ(all[0], (Values{{"train.learning_rate", "0.001"}, {"model.layers", "1"}}));
  EXPECT_EQ(all[1], (Values{{"train.learning_rate", "0.001"}, {"model.layers", "3"}}));
  EXPECT_EQ(all[5], (Values{{"train.learning_rate", "0.002"}, {"model.layers", "5"}}));
}

TEST(SweepSpec, DrawsAreInRangeDistinctAndRepeatable) {
  const std::string search =
      "\"train.learning_rate\" = {from = 1e-5, to = 1e-1, scale = \"log\"}\n\"model.layers\" = {from = 2, to = 4}\n"
      "\"train.decay\" = [\"cosine\", \"linear\"]";
  const Spec spec = spec_of(search, "method = \"random\"\ntrials = 400");
  const std::vector<Values> all = candidates(spec);
  ASSERT_EQ(all.size(), 400u);
  EXPECT_EQ(all, candidates(spec));
  std::set<std::string> layers, schedules;
  int below = 0;
  for (const Values& values : all) {
    const double rate = std::stod(values[0].second);
    EXPECT_GE(rate, 1e-5);
    EXPECT_LE(rate, 1e-1);
    below += rate < 1e-3;  // half of a logarithmic scale
    layers.insert(values[1].second);
    schedules.insert(values[2].second);
  }
  EXPECT_NEAR(below, 200, 40);
  EXPECT_EQ(layers, (std::set<std::string>{"2", "3", "4"}));
  EXPECT_EQ(schedules.size(), 2u);
  Spec other = spec;
  other.seed = 1;
  EXPECT_NE(all, candidates(other));
  // A prefix of a longer sweep: more trials keep the finished ones.
  other = spec;
  other.trials = 10;
  EXPECT_EQ(candidates(other), std::vector<Values>(all.begin(), all.begin() + 10));
}

TEST(SweepSpec, ASmallSpaceIsDrawnOnce) {
  EXPECT_EQ(candidates(spec_of("model.layers = [1, 2, 3]", "method = \"random\"\ntrials = 50")).size(), 3u);
}

TEST(SweepSpec, Rungs) {
  Spec spec = spec_of("model.layers = [1]", "method = \"halving\"\ntrials = 9");
  EXPECT_EQ(rungs(spec, 900), (std::vector<int64_t>{100, 300, 900}));
  EXPECT_EQ(rungs(spec, 4), (std::vector<int64_t>{1, 3, 4}));
  spec.first_steps = 500;
  EXPECT_EQ(rungs(spec, 900), (std::vector<int64_t>{500, 900}));
  spec.first_steps = 1000;
  EXPECT_EQ(rungs(spec, 900), (std::vector<int64_t>{900}));
  spec.method = Method::grid;
  EXPECT_EQ(rungs(spec, 900), (std::vector<int64_t>{900}));
}

TEST(SweepSpec, Errors) {
  EXPECT_EQ(error_of(""), "[sweep] sweep.toml: [search] has no keys; name those that vary");
  EXPECT_EQ(error_of("train.learning_rat = [1]"),
            "[sweep] sweep.toml:7: train.learning_rat is not a key of run.toml; did you mean \"train.learning_rate\"?");
  EXPECT_EQ(error_of("model.layers = []"), "[sweep] sweep.toml:7: model.layers has no values");
  EXPECT_EQ(
      error_of("model.layers = 3"),
      "[sweep] sweep.toml:7: model.layers must be a list of values, or a range {from = A, to = B}; a single value "
      "belongs to [set]");
  EXPECT_EQ(error_of("model.layers = {from = 3, to = 1}"),
            "[sweep] sweep.toml:7: model.layers goes from 3 to 1; from must be below to");
  EXPECT_EQ(error_of("model.layers = {from = 1, to = 3}"),
            "[sweep] model.layers is a range without a step; a grid needs one, or a list of values");
  EXPECT_EQ(error_of("train.learning_rate = {from = 0, to = 1, scale = \"log\"}"),
            "[sweep] sweep.toml:7: train.learning_rate begins at 0; a logarithmic scale needs from above 0");
  EXPECT_EQ(
      error_of("model.layers = {begin = 1}"),
      "[sweep] sweep.toml:7: model.layers has an unknown part \"begin\"; a range is {from = A, to = B}, with step "
      "= S or scale = \"log\"");
  EXPECT_EQ(error_of("model.layers = [1]", "method = \"bayes\""),
            "[sweep] sweep.toml:3: sweep.method is \"bayes\"; known methods: grid, random, halving, population");
  EXPECT_EQ(error_of("model.layers = [1]", "method = \"random\""),
            "[sweep] sweep.toml: method = \"random\" needs trials, the number of runs");
  EXPECT_EQ(error_of("model.layers = [1]", "trials = 3"),
            "[sweep] sweep.toml: trials is for random, halving and population; a grid runs all combinations");
  EXPECT_EQ(
      error_of("model.layers = [1, 2]", "method = \"population\"\ntrials = 4"),
      "[sweep] sweep.toml: model.layers cannot change during a run; a population searches keys that a resumed run "
      "may change, as train.learning_rate");
  EXPECT_EQ(error_of("train.learning_rate = [1]", "method = \"population\"\ntrials = 1"),
            "[sweep] sweep.toml: a population needs trials = 2 or more");
  EXPECT_EQ(error_of("model.layers = [1]", "", "model.layers = 2"),
            "[sweep] sweep.toml:7: model.layers is given twice");
  EXPECT_EQ(error_of("train.folder = [\"a\"]"),
            "[sweep] sweep.toml:7: train.folder is set by the sweep: each run gets its own folder");
  EXPECT_EQ(error_of("train.seed = {from = 1, to = 1000, step = 1}\nmodel.layers = {from = 1, to = 1000, step = 1}"),
            "[sweep] the grid has more than 100000 runs; search fewer values, or set method = \"random\"");
}

}  // namespace
}  // namespace kintsugi::sweep::spec_test
