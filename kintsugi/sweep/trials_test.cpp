#include "kintsugi/sweep/trials.h"

#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/sweep/sweep_page.h"

namespace kintsugi::sweep::trials_test {
namespace {

namespace fs = std::filesystem;

Sweep sweep_of(size_t trials, std::vector<int64_t> rungs) {
  Sweep sweep;
  sweep.measure = "loss";
  sweep.rungs = std::move(rungs);
  for (size_t t = 0; t < trials; ++t) sweep.trials.push_back({.values = {{"model.layers", std::to_string(t)}}});
  return sweep;
}

// Trains everything: the result of trial t after any rung is `result(t)`; NaN: it fails.
template <typename F>
void finish(Sweep& sweep, F&& result) {
  for (std::vector<Work> left = work(sweep); !left.empty(); left = work(sweep))
    for (const Work& w : left) {
      Trial& trial = sweep.trials[static_cast<size_t>(w.trial)];
      const double r = result(w.trial);
      if (r != r)
        trial.failed = "lost";
      else
        trial.results.push_back(r);
    }
}

TEST(SweepTrials, HalvingKeepsTheBestThird) {
  Sweep sweep = sweep_of(24, {10, 30, 90});
  EXPECT_EQ(work(sweep).size(), 24u);
  finish(sweep, [](int64_t t) { return static_cast<double>((t * 7) % 24); });
  EXPECT_EQ(members(sweep, 1).size(), 8u);
  EXPECT_EQ(members(sweep, 2).size(), 2u);
  EXPECT_EQ(ranking(sweep)[0], 0);
  EXPECT_EQ(ranking(sweep)[1], 7);  // 49 % 24 = 1
  EXPECT_EQ(steps_trained(sweep), 16 * 10 + 6 * 30 + 2 * 90);
  EXPECT_LE(3 * steps_trained(sweep), 24 * 90);
}

TEST(SweepTrials, TheLargerIsTheBetter) {
  Sweep sweep = sweep_of(6, {1, 2});
  sweep.maximize = true;
  finish(sweep, [](int64_t t) { return static_cast<double>(t); });
  EXPECT_EQ(members(sweep, 1), (std::vector<int64_t>{4, 5}));
  EXPECT_EQ(ranking(sweep)[0], 5);
}

TEST(SweepTrials, AFailedRunLeavesAndAnotherTakesItsPlace) {
  Sweep sweep = sweep_of(3, {1, 2});
  finish(sweep, [](int64_t t) { return t == 0 ? NAN : static_cast<double>(t); });
  EXPECT_EQ(members(sweep, 1), (std::vector<int64_t>{1}));
  EXPECT_EQ(ranking(sweep), (std::vector<int64_t>{1, 2, 0}));
  sweep = sweep_of(2, {1, 2});
  finish(sweep, [](int64_t) { return NAN; });
  EXPECT_TRUE(work(sweep).empty());
}

TEST(SweepTrials, NextRungWaitsForAll) {
  Sweep sweep = sweep_of(3, {1, 2});
  sweep.trials[0].results = {1.0};
  sweep.trials[1].results = {2.0};
  EXPECT_EQ(work(sweep), (std::vector<Work>{{2, 1, 0}}));
  sweep.trials[2].failed = "lost";
  EXPECT_EQ(work(sweep), (std::vector<Work>{{0, 2, 1}}));
}

TEST(SweepTrials, FileRoundTripAndOtherSweep) {
  const fs::path folder = fs::temp_directory_path() / "kintsugi_sweep_trials_test";
  fs::remove_all(folder);
  fs::create_directories(folder);
  Sweep sweep = sweep_of(3, {1, 2});
  EXPECT_FALSE(read_sweep(folder, sweep));
  Sweep begun = sweep;
  begun.trials[0].results = {0.1 + 0.2};
  begun.trials[1].failures = 4;
  begun.trials[1].failed = "failed \"often\"";
  write_sweep(folder, begun);
  const auto read = read_sweep(folder, sweep);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->trials[0].results, begun.trials[0].results);
  EXPECT_EQ(read->trials[1].failures, 4);
  EXPECT_EQ(read->trials[1].failed, begun.trials[1].failed);
  const auto error = [&](const Sweep& now) -> std::string {
    try {
      read_sweep(folder, now);
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "no error";
  };
  EXPECT_NE(error(sweep_of(4, {1, 2})).find("was begun with other runs; set another sweep.folder, or remove it"),
            std::string::npos);
  EXPECT_NE(error(sweep_of(3, {2})).find("was begun with other steps"), std::string::npos);
  fs::remove_all(folder);
}

TEST(SweepPage, TableAndPicture) {
  Spec spec;
  spec.folder = "s";
  spec.search.push_back({.key = "model.layers", .values = {"0", "1", "2"}});
  Sweep sweep = sweep_of(3, {5});
  finish(sweep, [](int64_t t) { return t == 2 ? NAN : 2.5 - static_cast<double>(t); });
  sweep.trials[2].failed = "a rank, \"1\"";
  EXPECT_EQ(result_csv(spec, sweep),
            "place,run,model.layers,steps,loss,failures,note\n"
            "1,run_001,1,5,1.5,0,\n"
            "2,run_000,0,5,2.5,0,\n"
            "3,run_002,2,0,-,0,\"a rank, \"\"1\"\"\"\n");
  const std::string picture = parallel_coordinates(spec, sweep);
  EXPECT_NE(picture.find("model.layers"), std::string::npos);
  const std::vector<report::MetricsTable> none(3);
  EXPECT_NE(sweep_page(spec, sweep, none).find("run_001"), std::string::npos);
}

Spec population() {
  Spec spec;
  spec.method = Method::population;
  spec.search = {{.key = "train.learning_rate", .from = 1e-5, .to = 1e-1, .log = true},
                 {.key = "checkpoint.keep", .values = {"1", "2", "3"}}};
  return spec;
}

TEST(SweepTrials, APopulationTakesOverFromTheBest) {
  const Spec spec = population();
  Sweep sweep;
  sweep.measure = "loss";
  sweep.population = true;
  sweep.rungs = {10, 20, 30};
  for (int t = 0; t < 8; ++t)
    sweep.trials.push_back({.values = {{"train.learning_rate", "0.01"}, {"checkpoint.keep", "2"}}});
  EXPECT_EQ(work(sweep).size(), 8u);
  for (int t = 0; t < 8; ++t) sweep.trials[static_cast<size_t>(t)].results.push_back(t);
  EXPECT_TRUE(work(sweep).empty());  // before the exchange
  ASSERT_TRUE(exchange_is_due(sweep));
  const auto exchanges = exchange(spec, sweep);
  ASSERT_EQ(exchanges.size(), 2u);
  for (const Exchange& e : exchanges) {
    EXPECT_GE(e.trial, 6);
    EXPECT_LE(e.parent, 1);
    EXPECT_TRUE(e.values[0].second == "0.008" || e.values[0].second == "0.0125") << e.values[0].second;
    EXPECT_TRUE(e.values[1].second == "1" || e.values[1].second == "3") << e.values[1].second;
  }
  apply(exchanges, sweep);
  EXPECT_FALSE(exchange_is_due(sweep));
  EXPECT_EQ(work(sweep).size(), 8u);
  EXPECT_EQ(work(sweep)[0].until, 20);

  const fs::path folder = fs::path(testing::TempDir()) / "sweep_population_test";
  fs::create_directories(folder);
  write_sweep(folder, sweep);
  Sweep now = sweep;
  now.exchanges = 0;
  for (Trial& t : now.trials) t = {.values = {{"train.learning_rate", "0.01"}, {"checkpoint.keep", "2"}}};
  const auto read = read_sweep(folder, now);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->exchanges, 1u);
  EXPECT_EQ(read->trials[7].values, sweep.trials[7].values);
  EXPECT_EQ(read->trials[7].parents, sweep.trials[7].parents);
  EXPECT_EQ(work(*read), work(sweep));
  fs::remove_all(folder);
}

TEST(SweepTrials, PerturbedValuesStayWithinTheirEnds) {
  const Spec spec = population();
  for (int64_t trial = 0; trial < 20; ++trial) {
    EXPECT_LE(std::stod(perturbed(spec, {{"a", "0.1"}, {"b", "3"}}, trial, 0)[0].second), 0.1);
    EXPECT_GE(std::stod(perturbed(spec, {{"a", "1e-05"}, {"b", "1"}}, trial, 0)[0].second), 1e-5);
  }
}

}  // namespace
}  // namespace kintsugi::sweep::trials_test
