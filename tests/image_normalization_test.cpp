// Means and deviations of images: a run on bytes or raw fields equals one on arrays that are normalized already.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/images/test_images.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/metrics.h"
#include "tests/process.h"
#include "tests/small_run.h"

namespace kintsugi::tests::image_normalization_test {
namespace {

constexpr int64_t kImages = 12, kPixels = 20 * 20;
constexpr std::array kMean = {0.485, 0.456, 0.406}, kDeviation = {0.229, 0.224, 0.225};
constexpr std::array kFieldMean = {280.0, -3.0, 55000.0}, kFieldDeviation = {12.0, 0.5, 3000.0};

class Normalization : public testing::Test {
 protected:
  Normalization() {
    const auto key = kernels::random_key(3, "images");
    std::string bytes, normalized, fields, labels;
    const auto put = [](std::string& to, float x) { to.append(reinterpret_cast<const char*>(&x), sizeof x); };
    for (int64_t n = 0; n < kImages; ++n) {
      labels += fmt::format("{}\n", n % 3);
      for (size_t c = 0; c < 3; ++c)
        for (int64_t i = 0; i < kPixels; ++i) {
          const uint32_t byte = kernels::random_word(key, static_cast<uint64_t>(n), c * kPixels + i) % 256;
          const double x = (byte / 255.0 - kMean[c]) / kDeviation[c];
          bytes += static_cast<char>(byte);
          put(normalized, static_cast<float>(x));
          put(fields, static_cast<float>(x * kFieldDeviation[c] + kFieldMean[c]));
        }
    }
    const std::string shape = fmt::format("({}, 3, 20, 20)", kImages);
    base::write_file_atomically(files_.file("bytes.npy"), images::npy_file("|u1", shape, bytes));
    base::write_file_atomically(files_.file("normalized.npy"), images::npy_file("<f4", shape, normalized));
    base::write_file_atomically(files_.file("fields.npy"), images::npy_file("<f4", shape, fields));
    base::write_file_atomically(files_.file("labels.csv"), labels);
    base::write_file_atomically(files_.file("run.toml"), R"([model]
family = "lenet"
[train]
steps = 3
global_batch = 4
optimizer = "sgd"
learning_rate = 1e-2
warmup_steps = 0
evaluate_every = 3
evaluate_batches = 0
[parallel]
threads = 1
)");
  }

  // Loss of the last step and of the validation images.
  std::array<double, 2> losses(const std::string& run, const std::string& data, std::vector<std::string> sets = {},
                               bool resume = false) {
    for (const char* use : {"train", "validation"}) {
      sets.push_back(fmt::format("data.{}={}", use, files_.file(data).string()));
      sets.push_back(fmt::format("data.{}_labels={}", use, files_.file("labels.csv").string()));
    }
    sets.push_back("train.folder=" + files_.folder(run).string());
    const train::Outcome outcome = run_here(files_.file("run.toml").string(), sets, resume);
    return {train::read_step(files_.folder(run) / "metrics.jsonl", 3).value().loss, outcome.validation_loss.value()};
  }

  std::string error_of(const std::string& data, const std::vector<std::string>& sets, const std::string& run = "none",
                       bool resume = false) {
    try {
      losses(run, data, sets, resume);
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "";
  }

  static std::vector<std::string> keys(const std::string& mean, const std::string& deviation) {
    return {"model.image_mean=" + mean, "model.image_deviation=" + deviation};
  }

  RunFiles files_;
};

}  // namespace

TEST_F(Normalization, LossesOfArraysThatAreNormalized) {
  const std::array<double, 2> want = losses("normalized", "normalized.npy");
  const auto expect_same = [&](const std::string& run, const std::string& data, const std::vector<std::string>& sets) {
    const std::array<double, 2> got = losses(run, data, sets);
    for (const size_t i : {0, 1}) EXPECT_NEAR(got[i], want[i], 1e-5 * want[i]) << run << " " << i;
  };
  const std::vector<std::string> of_bytes = keys("0.485,0.456,0.406", "[0.229, 0.224, 0.225]");
  expect_same("bytes", "bytes.npy", of_bytes);
  expect_same("fields", "fields.npy", keys("280,-3,55000", "12,0.5,3000"));
  std::vector<std::string> on_device = of_bytes;
  on_device.emplace_back("parallel.device=emulated");
  expect_same("device", "bytes.npy", on_device);
  EXPECT_NE(losses("plain", "bytes.npy")[0], want[0]);
  // Both numbers are those of the checkpoint in other verbs.
  const Ended e = run_kintsugi(files_.folder(""), "evaluate " + files_.folder("bytes").string());
  const size_t at = e.out.find("\nloss ");
  ASSERT_NE(at, std::string::npos) << e.out << e.err;
  EXPECT_NEAR(std::stod(e.out.substr(at + 6)), want[1], 1e-3) << e.out;
}

TEST_F(Normalization, KeysThatDoNotFitAreSaid) {
  EXPECT_EQ(error_of("bytes.npy", {"model.image_mean=[0.5, 0.5]"}),
            "[config] --set: model.image_mean has 2 numbers, but images have 3 channels; it must have 1 or 3");
  EXPECT_EQ(error_of("bytes.npy", {"model.image_deviation=[1, 0, 1]"}),
            "[config] --set: model.image_deviation[1] = 0 is out of range; it must be a number above 0");
  EXPECT_EQ(error_of("bytes.npy", {"model.image_deviation=0"}),
            "[config] --set: model.image_deviation = 0 is out of range; it must be a list of numbers, each above 0");
  EXPECT_EQ(error_of("bytes.npy", {"model.image_mean=nan"}),
            "[config] --set: model.image_mean = nan is out of range; it must be a list of numbers");
  losses("run", "bytes.npy", {"model.image_mean=0.4"});
  EXPECT_NE(error_of("bytes.npy", {"model.image_mean=0.5", "train.steps=4"}, "run", true)
                .find("model.image_mean is [0.5], was [0.4]; a resumed run keeps these settings"),
            std::string::npos);
}

}  // namespace kintsugi::tests::image_normalization_test
