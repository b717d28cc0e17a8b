// Runs on images: LeNet learns, resumes, and gives the same losses if ranks share each image.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/metrics.h"
#include "tests/paths.h"
#include "tests/small_run.h"

namespace kintsugi::tests::images_test {
namespace {

// CIFAR-10 records of noise with a bright square whose position encodes the class.
std::string bright_squares(int64_t count, uint64_t seed) {
  const auto key = kernels::random_key(seed, "images");
  std::string file;
  for (int64_t n = 0; n < count; ++n) {
    const int64_t label = n % 10, top = label / 4 * 10, left = label % 4 * 8;
    file += static_cast<char>(label);
    for (int64_t i = 0; i < 3 * 32 * 32; ++i) {
      const int64_t row = i / 32 % 32, column = i % 32;
      const bool bright = row >= top && row < top + 8 && column >= left && column < left + 8;
      const uint32_t noise = kernels::random_word(key, static_cast<uint64_t>(n), static_cast<uint64_t>(i)) % 100;
      file += static_cast<char>(noise + (bright ? 120 : 0));
    }
  }
  return file;
}

class ImageRuns : public testing::Test {
 protected:
  ImageRuns() {
    base::write_file_atomically(files_.file("train.bin"), bright_squares(200, 1));
    base::write_file_atomically(files_.file("test.bin"), bright_squares(50, 2));
  }

  std::string toml(const std::string& train, const std::string& validation) const {
    const std::filesystem::path path = files_.file("images.toml");
    base::write_file_atomically(path, fmt::format(R"([model]
family = "lenet"
[data]
train = "{}"
validation = "{}"
[train]
folder = "{}"
steps = 30
global_batch = 20
learning_rate = 3e-3
warmup_steps = 0
weight_decay = 0
evaluate_every = 10
evaluate_batches = 0
[parallel]
threads = 1
[checkpoint]
every = 10
)",
                                                  train, validation, files_.folder("run").string()));
    return path.string();
  }
  std::string toml() const { return toml(files_.file("train.bin").string(), files_.file("test.bin").string()); }

  train::Metrics metrics(const std::string& run, int64_t step) const {
    return train::read_step(files_.folder(run) / "metrics.jsonl", step).value();
  }
  std::string folder(const std::string& run) const { return "train.folder=" + files_.folder(run).string(); }

  RunFiles files_;
};

}  // namespace

TEST_F(ImageRuns, LeNetLearnsAndResumesWithTheSameLosses) {
  const train::Outcome whole = run_here(toml(), {});
  EXPECT_TRUE(whole.finished);
  const train::Metrics last = metrics("run", 30);
  ASSERT_TRUE(last.top1 && last.top5);
  EXPECT_GT(*last.top1, 0.9);
  EXPECT_GE(*last.top5, *last.top1);
  EXPECT_LT(last.loss, 0.5 * metrics("run", 1).loss);

  run_here(toml(), {folder("stopped")}, false, 15);
  const train::Outcome resumed = run_here(toml(), {folder("stopped")}, true);
  EXPECT_TRUE(resumed.finished);
  EXPECT_EQ(resumed.validation_loss, whole.validation_loss);
  EXPECT_EQ(metrics("stopped", 30).loss, last.loss);
}

TEST_F(ImageRuns, RanksThatShareImagesGiveTheLossOfOne) {
  run_here(toml(), {"train.steps=10"});
  const train::Metrics one = metrics("run", 10);
  for (const std::string layout : {"space=2", "data=2", "tensor=2"}) {
    run_here(toml(), {"train.steps=10", "parallel.ranks=2", "parallel." + layout, folder(layout)});
    const train::Metrics two = metrics(layout, 10);
    EXPECT_NEAR(two.loss, one.loss, 1e-4 * one.loss) << layout;
    EXPECT_NEAR(*two.validation_loss, *one.validation_loss, 1e-4 * *one.validation_loss) << layout;
    EXPECT_NEAR(*two.top1, *one.top1, 0.041) << layout;  // two of 50 images, if sums are rounded otherwise
  }
}

TEST_F(ImageRuns, ImagesThatDoNotFitAreSaid) {
  const auto error_of = [&](const std::vector<std::string>& sets) -> std::string {
    try {
      run_here(toml(), sets);
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(error_of({"model.image_height=28"}).find("model.image_height = 28, but the data has 32"), std::string::npos)
      << error_of({"model.image_height=28"});
  EXPECT_NE(error_of({"model.outputs=7"}).find("is less than the 10 classes of the data"), std::string::npos)
      << error_of({"model.outputs=7"});
  EXPECT_NE(error_of({"model.layers=3"}).find("which has 4 layers; leave it out"), std::string::npos)
      << error_of({"model.layers=3"});
}

// Real images, decoded: after three epochs of 4,000, well above chance (10%).
TEST_F(ImageRuns, LeNetOnCifar) {
  const std::filesystem::path data = std::filesystem::path(shared_folder()) / "data/cifar10";
  if (!std::filesystem::exists(data)) GTEST_SKIP() << "no " << data;
  run_here(toml((data / "train_subset.bin").string(), (data / "test_subset.bin").string()),
           {"train.global_batch=50", "train.steps=240", "train.evaluate_every=80", "train.learning_rate=2e-3"});
  EXPECT_GT(*metrics("run", 240).top1, 0.35);
}

}  // namespace kintsugi::tests::images_test
