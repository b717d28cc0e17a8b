#include "kintsugi/train/corpus.h"

#include <gtest/gtest.h>

#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resume.h"
#include "kintsugi/data/test_folder.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::train::corpus_test {
namespace {

using data::error_of;
using data::TestFolder;
using Words = std::vector<std::string>;

// A perceptron on pairs.csv, without sizes.
config::Resolved perceptron(const TestFolder& folder, const std::vector<std::string>& sets = {},
                            const std::string& train = "pairs.csv") {
  folder.write("run.toml", "[model]\nfamily = \"mlp\"\nobjective = \"classes\"\nlayers = 1\nembed = 4\n" +
                               (train.empty() ? "" : "[data]\ntrain = \"" + folder.text(train) + "\"\n"));
  return config::load(folder / "run.toml", models::catalog(), sets, 1);
}

}  // namespace

TEST(CompleteFromData, FillsInTheSizesOfAPerceptron) {
  const TestFolder folder;
  folder.write("pairs.csv", "0.5,1,0\n1.5,2,1\n");
  config::Resolved run = perceptron(folder);
  EXPECT_EQ(config::sizes_of_data(run), (Words{"model.features", "model.outputs"}));
  EXPECT_EQ(error_of([&] { models::build_training(run.settings); }),
            "[model] model.outputs of the mlp model is 0: set it, or name the data that it follows from");
  complete_from_data(run);
  EXPECT_EQ(run.settings.model.features, 2);
  EXPECT_EQ(run.settings.model.outputs, 2);
  EXPECT_TRUE(config::sizes_of_data(run).empty());
  models::build_training(run.settings);
}

// With all sizes given, data need not be there.
TEST(CompleteFromData, OpensNothingWithoutNeed) {
  const TestFolder folder;
  config::Resolved run = perceptron(folder, {"model.features=3", "model.outputs=2"}, "missing.csv");
  complete_from_data(run);
  EXPECT_EQ(run.settings.model.features, 3);
  config::Resolved open = perceptron(folder, {}, "");
  EXPECT_EQ(error_of([&] { complete_from_data(open); }),
            "[config] data.train is missing, which determines model.features, model.outputs");
}

// A resumed run compares sizes once its data is open.
TEST(CompleteFromData, SizesOfAResumedRunAreThoseOfItsData) {
  const TestFolder folder;
  folder.write("pairs.csv", "0.5,1,0\n1.5,2,1\n");
  config::Resolved saved = perceptron(folder);
  complete_from_data(saved);
  const config::Resolved now = perceptron(folder, {"train.steps=250"});
  EXPECT_EQ(config::compare_for_resume(saved, now), Words{});
  EXPECT_EQ(config::resume_with(saved, now).settings.model.features, 2);
  EXPECT_EQ(config::compare_for_resume(saved, perceptron(folder, {"model.features=3"})), Words{"model.features"});
  folder.write("pairs.csv", "0.5,1,4,0\n1.5,2,4,1\n");
  config::Resolved wider = config::resume_with(saved, now);
  const std::string error = error_of([&] { open_corpus(wider); });
  EXPECT_NE(error.find("model.features = 2"), error.npos) << error;
  EXPECT_NE(error.find(", but the data has 3"), error.npos) << error;
}

TEST(EvaluationSamples, NeedTheColumnsOfTheModel) {
  const TestFolder folder;
  folder.write("pairs.csv", "0.5,1,0\n1.5,2,1\n");
  folder.write("wide.csv", "0.5,1,4,0\n");
  config::Resolved run = perceptron(folder);
  complete_from_data(run);
  const samples::DataFile file = {.numbers = std::make_shared<const data::NumberTable>(folder / "wide.csv")};
  EXPECT_EQ(error_of([&] { samples::evaluation_samples(run.settings, file, 1); }),
            "[data] \"" + folder.text("wide.csv") + "\" has 4 columns, but the model needs 2 features and a class");
}

}  // namespace kintsugi::train::corpus_test
