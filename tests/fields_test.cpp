// Runs that predict fields: a ViT and a U-Net learn, predict, and give the same errors if ranks share each image.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/images/test_images.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/metrics.h"
#include "tests/paths.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::fields_test {
namespace {

constexpr int64_t kHeight = 32, kWidth = 16, kPixels = kHeight * kWidth;

std::string floats(const std::vector<float>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

// Smooth fields of two channels, and what is predicted of them: their sum, each channel shifted by a pixel, and a
// constant. [image channel height width]
struct Fields {
  std::vector<float> images, targets;

  Fields(int64_t count, uint64_t seed) {
    const auto key = kernels::random_key(seed, "fields");
    const auto drawn = [&](int64_t n, int64_t i) {
      return kernels::random_word(key, static_cast<uint64_t>(n), static_cast<uint32_t>(i)) * 0x1p-32;
    };
    for (int64_t n = 0; n < count; ++n) {
      const auto field = [&](int64_t c, int64_t y, int64_t x) {
        const double phase = 6.2832 * drawn(n, c), tilt = 6.2832 * drawn(n, 2 + c);
        return std::sin(0.39 * static_cast<double>(y) + phase) + std::cos(0.39 * static_cast<double>(x) + tilt);
      };
      const auto add = [&](std::vector<float>& to, const auto& f) {
        for (int64_t y = 0; y < kHeight; ++y)
          for (int64_t x = 0; x < kWidth; ++x) to.push_back(static_cast<float>(f(y, x)));
      };
      for (int64_t c = 0; c < 2; ++c) add(images, [&](int64_t y, int64_t x) { return field(c, y, x); });
      add(targets, [&](int64_t y, int64_t x) { return field(0, y, x) + field(1, y, x); });
      for (int64_t c = 0; c < 2; ++c) add(targets, [&](int64_t y, int64_t x) { return field(c, y, x + 1); });
      add(targets, [](int64_t, int64_t) { return 2.0; });
    }
  }
};

class FieldRuns : public testing::Test {
 protected:
  FieldRuns() {
    for (const auto& [name, count, seed] : {std::tuple{"train", 24, 1}, std::tuple{"test", 10, 2}}) {
      const Fields fields(count, static_cast<uint64_t>(seed));
      write(fmt::format("{}.npy", name), fmt::format("({}, 2, 32, 16)", count), fields.images);
      write(fmt::format("{}_fields.npy", name), fmt::format("({}, 4, 32, 16)", count), fields.targets);
    }
  }

  void write(const std::string& name, const std::string& shape, const std::vector<float>& values) const {
    base::write_file_atomically(files_.file(name), images::npy_file("<f4", shape, floats(values)));
  }
  std::string path(const std::string& name) const { return files_.file(name).string(); }

  std::string toml(const std::string& model, const std::string& train) const {
    base::write_file_atomically(
        files_.file("fields.toml"),
        fmt::format("[model]\n{}\nobjective = \"fields\"\n[data]\ntrain = \"{}\"\ntrain_labels = \"{}\"\n"
                    "validation = \"{}\"\nvalidation_labels = \"{}\"\n[train]\nfolder = \"{}\"\nsteps = 30\n"
                    "global_batch = 8\nlearning_rate = 3e-3\nwarmup_steps = 0\nweight_decay = 0\nevaluate_every = 15\n"
                    "evaluate_batches = 0\n{}\n[parallel]\nthreads = 1\n",
                    model, path("train.npy"), path("train_fields.npy"), path("test.npy"), path("test_fields.npy"),
                    files_.folder("run").string(), train));
    return path("fields.toml");
  }
  train::Metrics metrics(const std::string& run, int64_t step) const {
    return train::read_step(files_.folder(run) / "metrics.jsonl", step).value();
  }
  std::string folder(const std::string& run) const { return "train.folder=" + files_.folder(run).string(); }

  // The root mean square errors of predictions.npy, of each channel and of all.
  std::vector<double> errors_of_predictions(const std::vector<float>& targets) const {
    const std::string file = base::read_file(files_.file("predictions.npy"));
    const size_t bytes = targets.size() * sizeof(float);
    EXPECT_NE(file.find("'shape': (10, 4, 32, 16)"), file.npos);
    EXPECT_EQ((file.size() - bytes) % 64, 0u);
    std::vector<float> predicted(targets.size());
    std::memcpy(predicted.data(), file.data() + file.size() - bytes, bytes);
    std::vector<double> sums(5);
    for (size_t i = 0; i < targets.size(); ++i) {
      const double d = static_cast<double>(predicted[i]) - static_cast<double>(targets[i]);
      sums[i / kPixels % 4] += d * d;
      sums[4] += d * d;
    }
    for (size_t c = 0; c < 5; ++c) sums[c] = std::sqrt(sums[c] / (10 * kPixels * (c == 4 ? 4 : 1)));
    return sums;
  }

  std::string error_in(const std::string& config, const std::vector<std::string>& sets = {}) const {
    try {
      run_here(config, sets);
    } catch (const base::UserError& e) {
      std::string text = e.what();
      const std::string all = files_.folder("").string();
      for (size_t at; (at = text.find(all)) != text.npos;) text.erase(at, all.size());
      return text;
    }
    return "";
  }

  RunFiles files_;
};

constexpr const char* kVit = "family = \"vit\"\nlayers = 2\nembed = 32\nheads = 4\npatch = 8";
constexpr const char* kUnet = "family = \"unet\"\nembed = 4";

}  // namespace

// The metrics of a run are those of its predictions, also of a ViT that several ranks share.
TEST_F(FieldRuns, AViTLearnsThemAndPredicts) {
  const std::string config = toml(kVit, "loss = \"relative_l2\"");
  run_here(config, {});
  const train::Metrics first = metrics("run", 15), last = metrics("run", 30);
  ASSERT_TRUE(last.rmse);
  EXPECT_LT(last.loss, 0.6 * metrics("run", 1).loss);
  EXPECT_LT(*last.rmse, *first.rmse);
  EXPECT_LT(*last.validation_loss, 0.8);
  const std::vector<float> targets = Fields(10, 2).targets;
  for (const std::string ranks : {"", " --ranks 2 --set parallel.space=2 --set parallel.threads=1"}) {
    const Ended e =
        run_kintsugi(files_.folder(""), "predict " + files_.folder("run").string() + " " + path("test.npy") +
                                            " --output predictions.npy --batch 4" + ranks);
    ASSERT_EQ(e.code, 0) << e.err;
    const std::vector<double> errors = errors_of_predictions(targets);
    ASSERT_EQ(last.rmse_channels.size(), 4u);
    for (size_t c = 0; c < 4; ++c) EXPECT_NEAR(last.rmse_channels[c], errors[c], 1e-5 * errors[c]) << c;
    EXPECT_NEAR(*last.rmse, errors[4], 1e-5 * errors[4]);
  }
  const Ended e = run_kintsugi(files_.folder(""), "evaluate " + files_.folder("run").string() + " --data " +
                                                      path("test.npy") + " --labels " + path("test_fields.npy"));
  ASSERT_EQ(e.code, 0) << e.err;
  EXPECT_NE(e.out.find(fmt::format("RMSE       {:.4f}", *last.rmse).substr(0, 15)), e.out.npos) << e.out;
  EXPECT_NE(e.out.find("\nchannel 3  "), e.out.npos) << e.out;
  EXPECT_NE(e.out.find("10 samples"), e.out.npos) << e.out;
}

TEST_F(FieldRuns, RanksThatShareImagesGiveTheErrorsOfOne) {
  int runs = 0;
  for (const char* model : {kVit, kUnet})
    for (const char* loss : {"mse", "relative_l2"}) {
      const std::string config = toml(model, fmt::format("loss = \"{}\"", loss));
      const std::vector<std::string> few = {"train.steps=3",       "train.evaluate_every=3", "train.learning_rate=1e-4",
                                            "data.crop_padding=1", "data.flip=true",         "train.mixup=0.3"};
      const auto with = [&](std::vector<std::string> more) {
        more.insert(more.end(), few.begin(), few.end());
        return more;
      };
      const std::string first = fmt::format("one{}", ++runs), second = fmt::format("two{}", runs);
      run_here(config, with({folder(first)}));
      run_here(config, with({folder(second), "parallel.ranks=2", "parallel.space=2"}));
      const train::Metrics one = metrics(first, 3), two = metrics(second, 3);
      EXPECT_NEAR(two.loss, one.loss, 1e-4 * one.loss) << model << loss;
      EXPECT_NEAR(*two.validation_loss, *one.validation_loss, 1e-4 * *one.validation_loss) << model << loss;
      EXPECT_NEAR(*two.rmse, *one.rmse, 1e-4 * *one.rmse) << model << loss;
      if (std::string_view(loss) == "mse") {
        EXPECT_NEAR(*one.rmse * *one.rmse, *one.validation_loss, 1e-9) << model;
      }
    }
}

TEST_F(FieldRuns, WhatDoesNotFitIsSaid) {
  const std::string config = toml(kVit, "");
  EXPECT_EQ(error_in(config, {"data.train_labels=" + path("test_fields.npy")}),
            "[images] \"test_fields.npy\" holds [10 4 32 16] of <f4; the fields of \"train.npy\" are fp32 (<f4), [24 "
            "channel 32 16], or with channels last");
  EXPECT_EQ(error_in(config, {"model.outputs=3"}),
            "[config] --set: model.outputs = 3, but the data has 4 for each image");
  EXPECT_EQ(
      error_in(config, {"model.class_token=true"}),
      "[config] --set: model.class_token = true is not possible with model.objective = \"fields\", which are made "
      "of the tokens of patches; leave it out");
  EXPECT_EQ(error_in(config, {"model.family=lenet"}),
            "[config] --set: model.objective = \"fields\" is not possible with model.family = \"lenet\", which "
            "supports classes, numbers");
  EXPECT_EQ(error_in(config, {"train.loss=l1"}), "[config] --set: train.loss = \"l1\" is not one of mse, relative_l2");
  std::vector<float> zeros = Fields(24, 1).targets;
  std::fill_n(zeros.begin() + 7 * 4 * kPixels, 4 * kPixels, 0.0f);
  write("zeros.npy", "(24, 4, 32, 16)", zeros);
  EXPECT_EQ(
      error_in(config, {"train.loss=relative_l2", "data.train_labels=" + path("zeros.npy")}),
      "[images] \"zeros.npy\": the fields of image 7 are zero everywhere, and their relative error is not defined; "
      "leave it out, or set train.loss = \"mse\"");
}

}  // namespace kintsugi::tests::fields_test
