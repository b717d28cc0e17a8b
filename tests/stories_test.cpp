// A published trained model from its Hugging Face folder: logits, loss and greedy text equal those of an independent
// float64 forward pass.
#include "tests/stories.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "kintsugi/checkpoint/states.h"
#include "kintsugi/compile/programs.h"
#include "kintsugi/evaluate/checkpoint_model.h"
#include "kintsugi/evaluate/generator.h"
#include "kintsugi/exchange/folder_reader.h"
#include "kintsugi/models/step.h"
#include "kintsugi/run/evaluate_pass.h"

namespace kintsugi::tests::stories_test {

struct StoriesCase {
  std::string kernels, dtype;
  int threads;
  double logit_tolerance, loss_tolerance;  // four times what was measured, or more

  friend std::ostream& operator<<(std::ostream& out, const StoriesCase& c) {
    return out << c.kernels << " " << c.dtype;
  }
};

class Stories : public testing::TestWithParam<StoriesCase> {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(stories_folder() / "expected.json"))
      GTEST_SKIP() << "there is no " << (stories_folder() / "expected.json");
    expected = read_json(stories_folder() / "expected.json");
    ids = expected.at("ids").get<std::vector<int32_t>>();
    folder = std::make_unique<exchange::FolderReader>(stories_model());
    s.model = folder->config().model;
    s.parallel.device = GetParam().kernels;
    s.train.dtype = GetParam().dtype;
    kernels = compile::kernels_of(s);
    team = std::make_unique<base::ThreadTeam>(GetParam().threads);
  }

  std::unique_ptr<run::Executor> load(const models::Graphs& graphs) {
    auto executor = std::make_unique<run::Executor>(
        compile::only_stage(
            compile::compile({.settings = s, .kernels = *kernels, .graphs = &graphs, .threads = team->size()})),
        *kernels, *team);
    checkpoint::load_states(*executor, *folder, checkpoint::Load::weights);
    return executor;
  }

  // The largest difference from the stored logits.
  double difference(std::span<const float> logits, const std::string& name) const {
    double most = 0;
    const auto want = expected.at(name).get<std::vector<double>>();
    EXPECT_EQ(want.size(), 16u);
    for (size_t i = 0; i < want.size(); ++i) most = std::max(most, std::abs(static_cast<double>(logits[i]) - want[i]));
    return most;
  }

  nlohmann::json expected;
  std::vector<int32_t> ids;
  std::unique_ptr<exchange::FolderReader> folder;
  config::Settings s;
  std::unique_ptr<kernels::KernelSet> kernels;
  std::unique_ptr<base::ThreadTeam> team;
};

TEST_P(Stories, LogitsOfTheFirstAndLastPosition) {
  const auto text = std::span(ids);
  const auto executor = load(models::build_generation(s, 1, 64, s.model.context));
  evaluate::Generator generator(*executor);
  const double first = difference(generator.read(text.first(1)), "first_pos_logits_first16");
  const double last = difference(generator.read(text), "last_pos_logits_first16");
  fmt::print("stories260K, {} {}: logits differ by {:.2g} at the first position, {:.2g} at the last\n",
             GetParam().kernels, GetParam().dtype, first, last);
  EXPECT_LT(first, GetParam().logit_tolerance);
  EXPECT_LT(last, GetParam().logit_tolerance);
}

TEST_P(Stories, MeanLoss) {
  const auto length = static_cast<int64_t>(ids.size()) - 1;
  const auto executor = load(models::build_evaluation(s, 1, length));
  const run::LossSum loss = run::run_evaluation(*executor, 1, [&](const run::Executor::Inputs& inputs, int64_t) {
    inputs.set("tokens", {std::span(ids).first(static_cast<size_t>(length)), 0, length}, -1);
    inputs.set("labels", {std::span(ids).subspan(1, static_cast<size_t>(length)), 0, length}, -1);
  });
  const double difference = std::abs(loss.mean() - expected.at("mean_nll").get<double>());
  fmt::print("stories260K, {} {}: the mean loss differs by {:.2g}\n", GetParam().kernels, GetParam().dtype, difference);
  EXPECT_EQ(loss.count, static_cast<double>(length));
  EXPECT_LT(difference, GetParam().loss_tolerance);
}

TEST_P(Stories, GreedyText) {
  const auto executor = load(models::build_generation(s, 1, 16, s.model.context));
  evaluate::Generator generator(*executor);
  std::vector<int32_t> made = {ids[0]};
  generator.generate(std::span(ids).first(1), {.temperature = 0.0}, [&](int32_t id) {
    made.push_back(id);
    return made.size() < ids.size();
  });
  EXPECT_EQ(made, ids);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Stories,
                         testing::Values(StoriesCase{"cpu", "fp32", 1, 2e-5, 1e-6},
                                         StoriesCase{"reference", "fp32", 1, 2e-5, 1e-6},
                                         StoriesCase{"reference", "fp64", 1, 1e-5, 1e-7}),
                         [](const auto& info) { return info.param.kernels + "_" + info.param.dtype; });

}  // namespace kintsugi::tests::stories_test
