// Runs on images: LeNet learns, resumes, and gives the same losses if ranks share each image.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/checkpoint/reader.h"
#include "kintsugi/images/test_images.h"
#include "kintsugi/kernels/random.h"
#include "kintsugi/train/metrics.h"
#include "tests/markup.h"
#include "tests/paths.h"
#include "tests/process.h"
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

// Bytes of images are staged, cropped, mixed and normalized; runs change between the processor and a device.
TEST_F(ImageRuns, OnADeviceTheyTrainAndClassifyAsOnTheProcessor) {
  base::write_file_atomically(files_.file("few.bin"), bright_squares(20, 2));
  const auto in = [&](const std::string& run, const std::string& device) {
    return std::vector<std::string>{folder(run),
                                    "parallel.device=" + device,
                                    "data.validation=" + files_.file("few.bin").string(),
                                    "data.crop_padding=2",
                                    "data.flip=true",
                                    "train.steps=4",
                                    "train.global_batch=8",
                                    "train.mixup=0.2",
                                    "train.label_smoothing=0.1",
                                    "train.evaluate_every=2",
                                    "checkpoint.every=2"};
  };
  run_here(toml(), in("cpu", "cpu"));
  run_here(toml(), in("device", "emulated"));
  run_here(toml(), in("both", "emulated"), false, 2);
  run_here(toml(), in("both", "cpu"), true);
  for (const std::string run : {"device", "both"})
    for (const int64_t step : {1, 2, 4}) {
      const train::Metrics got = metrics(run, step), want = metrics("cpu", step);
      EXPECT_NEAR(got.loss, want.loss, 1e-5 * want.loss) << run << " " << step;
      if (step == 1) continue;
      EXPECT_NEAR(*got.validation_loss, *want.validation_loss, 1e-5 * *want.validation_loss) << run << " " << step;
      EXPECT_EQ(*got.top1, *want.top1) << run << " " << step;
      EXPECT_EQ(*got.top5, *want.top5) << run << " " << step;
    }
  const auto classified = [&](const std::string& device) {
    const Ended e = run_kintsugi(files_.folder(""), "classify " + files_.folder("cpu").string() + " " +
                                                        files_.file("few.bin").string() +
                                                        " --show 0 --confusion --set parallel.device=" + device);
    EXPECT_EQ(e.code, 0) << e.err;
    return e.out;
  };
  EXPECT_EQ(classified("emulated"), classified("cpu"));
}

// As of processes without NCCL.
TEST_F(ImageRuns, HalosOfDevicesTravelThroughHostMemory) {
  base::write_file_atomically(files_.file("net.toml"),
                              "[model]\nfamily = \"lenet\"\noutputs = 5\nimage_channels = 3\nimage_height = 24\n"
                              "image_width = 20\n[train]\nsteps = 4\nglobal_batch = 4\noptimizer = \"sgd\"\n"
                              "[parallel]\nspace = 2\nthreads = 1\ndevice = \"emulated\"\n");
  const Ended e =
      run_kintsugi(files_.folder(""), "compare net.toml --random --steps 2", "export KINTSUGI_DEVICE_GROUPS=host");
  EXPECT_EQ(e.code, 0) << e.err;
  EXPECT_NE(e.out.find("the same: 2 steps, 2 ranks (space=2)"), std::string::npos) << e.out;
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
  EXPECT_EQ(error_of({"data.crop_padding=32"}),
            "[images] data.crop_padding 32 is too large for images of 32 x 32; it must be smaller");
  EXPECT_EQ(error_of({"train.mixup=1.5"}),
            "[config] --set: train.mixup = 1.5 is out of range; it must be a number from 0 to 1");
  EXPECT_EQ(error_of({"parallel.ranks=6", "parallel.space=6"}),
            "[plan] dim \"height\" of size 5, with \"width\" of size 5, is smaller than mesh axis \"space\" of size 6; "
            "nearest space: 5; model.image_height = 36 works; parallel.allow_repeat = true computes "
            "such layers on each rank");
}

// Labels, and arrays of another rank, type or size than a model reads.
TEST_F(ImageRuns, ArraysThatDoNotFitAreSaid) {
  const auto write = [&](const std::string& name, const std::string& type, const std::string& shape, size_t bytes) {
    base::write_file_atomically(files_.file(name), images::npy_file(type, shape, std::string(bytes, '\1')));
    return files_.file(name).string();
  };
  const auto error_of = [&](const std::string& images, const std::string& labels,
                            const std::string& model) -> std::string {
    const std::filesystem::path path = files_.file("arrays.toml");
    base::write_file_atomically(path,
                                fmt::format("[model]\n{}\n[data]\ntrain = \"{}\"\ntrain_labels = \"{}\"\n[train]\n"
                                            "folder = \"{}\"\nsteps = 1\nglobal_batch = 2\n[parallel]\nthreads = 1\n",
                                            model, images, labels, files_.folder("arrays").string()));
    try {
      run_here(path.string(), {});
    } catch (const base::UserError& e) {
      std::string text = e.what();
      const std::string folder = files_.folder("").string();
      for (size_t at; (at = text.find(folder)) != text.npos;) text.erase(at, folder.size());
      return text;
    }
    return "";
  };
  const std::string labels = files_.file("labels.csv").string(), gap = files_.file("gap.csv").string();
  base::write_file_atomically(labels, "0\n1\n");
  base::write_file_atomically(gap, "0\n2\n");
  const std::string good = write("x.npy", "|u1", "(2, 1, 28, 28)", 2 * 784), lenet = "family = \"lenet\"";
  EXPECT_EQ(error_of(good, gap, lenet),
            "[images] class 1 of 0 to 2 has no image in \"x.npy\"; number the classes from 0 without gaps, or set "
            "model.outputs = 3 to train without it");
  EXPECT_EQ(error_of(good, gap, lenet + "\noutputs = 2"),
            "[config] arrays.toml:3: model.outputs = 2 is less than the 3 classes of the data; raise it, or "
            "leave it out");
  EXPECT_EQ(
      error_of(write("small.npy", "|u1", "(2, 1, 8, 8)", 128), labels, lenet),
      "[model] conv2: the window of 5 exceeds its input of height 2; model.image_height = 8 is too small, the minimum "
      "is 16");
  EXPECT_EQ(
      error_of(write("flat.npy", "|u1", "(2, 64)", 128), labels, lenet),
      "[images] \"flat.npy\" holds [2 64] of |u1; images are [image height width], with a channel dim before or after "
      "height and width, or volumes [image channel depth height width]");
  // A NaN is named as such, with what to do.
  const std::string nan = std::string(8, '\xff') + std::string(2 * 784 * 4 - 8, '\0');
  base::write_file_atomically(files_.file("nan.npy"), images::npy_file("<f4", "(2, 1, 28, 28)", nan));
  EXPECT_EQ(error_of(files_.file("nan.npy").string(), labels, lenet),
            "[train] step 1: the loss is not finite; first bad value: input images of micro-batch 0; nothing was saved "
            "yet: remove such samples from the data");
  std::filesystem::remove_all(files_.folder("arrays"));
  EXPECT_EQ(error_of(write("wide.npy", "<f8", "(2, 4, 4)", 256), labels, lenet),
            "[images] \"wide.npy\" holds [2 4 4] of <f8; images are uint8 (|u1) or fp32 (<f4)");
  const std::string unet = "family = \"unet\"\nembed = 2\noutputs = 2";
  const std::string tall = write("tall.npy", "|u1", "(2, 1, 24, 16)", 2 * 384);
  EXPECT_EQ(error_of(tall, write("classes.npy", "|u1", "(2, 24, 16)", 2 * 384), unet),
            "[model] model.image_height = 24 is not a multiple of 16, which a unet of 4 levels needs; nearest: 16, 32");
  EXPECT_EQ(
      error_of(tall, write("other.npy", "|u1", "(2, 16, 16)", 512), unet),
      "[images] \"other.npy\" holds [2 16 16] of |u1; the classes of pixels of \"tall.npy\" are [2 24 16] of |u1");
  EXPECT_EQ(error_of(write("even.npy", "|u1", "(2, 1, 16, 16)", 512), write("ones.npy", "|u1", "(2, 16, 16)", 512),
                     "family = \"unet\"\nembed = 2\noutputs = 1"),
            "[config] arrays.toml:4: model.outputs = 1 is less than the 2 classes of the data; raise it, or "
            "leave it out");
  EXPECT_EQ(error_of(write("least.npy", "|u1", "(2, 1, 16, 16)", 512), labels, lenet), "");
}

TEST_F(ImageRuns, AMixtureOfImagesIsLearned) {
  run_here(toml(), {"train.mixup=0.2", "train.steps=60", "train.evaluate_every=60"});
  EXPECT_GT(*metrics("run", 60).top1, 0.9);
  run_here(toml(), {"train.mixup=0.2", "train.steps=4", folder("one")});
  run_here(toml(), {"train.mixup=0.2", "train.steps=4", "parallel.ranks=2", "parallel.data=2", folder("two")});
  EXPECT_NEAR(metrics("two", 4).loss, metrics("one", 4).loss, 1e-4 * metrics("one", 4).loss);
  run_here(toml(), {"train.steps=4", folder("plain")});
  EXPECT_NE(metrics("one", 4).loss, metrics("plain", 4).loss);
}

// A new head for other classes, on frozen convolutions of another run.
TEST_F(ImageRuns, AHeadIsTrainedOnFrozenConvolutions) {
  run_here(toml(), {"train.steps=10"});
  // Records without their labels, as an array.
  std::string pixels, labels;
  const std::string few = bright_squares(60, 3);
  for (size_t i = 0; i < 60; ++i) {
    pixels += few.substr(i * 3073 + 1, 3072);
    labels += fmt::format("{}\n", few[i * 3073] % 3);
  }
  const std::string images = files_.file("few.npy").string(), classes = files_.file("few.csv").string();
  base::write_file_atomically(images, images::npy_file("|u1", "(60, 3, 32, 32)", pixels));
  base::write_file_atomically(classes, labels);
  const std::vector<std::string> sets = {"train.steps=30",
                                         "train.init_from=" + files_.folder("run").string(),
                                         "train.freeze=[\"conv1\", \"conv2\"]",
                                         "data.train=" + images,
                                         "data.train_labels=" + classes,
                                         "data.validation=" + images,
                                         "data.validation_labels=" + classes};
  const auto in = [&](const std::string& run, std::vector<std::string> more = {}) {
    more.push_back(folder(run));
    more.insert(more.end(), sets.begin(), sets.end());
    return more;
  };
  const auto refused = [&]() -> std::string {
    try {
      run_here(toml(), in("refused"));
    } catch (const base::UserError& e) {
      return e.what();
    }
    return "";
  };
  EXPECT_NE(
      refused().find("holds fc3.weight [embed:84 class:10], the model needs [embed:84 class:3]: [model] must be that "
                     "of the checkpoint, or train.init_new = [\"fc3\"] initializes it anew"),
      std::string::npos)
      << refused();
  run_here(toml(), in("tuned", {"train.init_new=[\"fc3\"]"}));
  EXPECT_GT(*metrics("tuned", 30).top1, 0.8);
  const auto weight = [&](const std::string& run, const std::string& step, const std::string& name) {
    const checkpoint::CheckpointReader reader(files_.folder(run) / step);
    std::vector<float> x(static_cast<size_t>(reader.type(name).shape.elements()));
    reader.read({.name = name, .box = {}, .flat = {}}, tensor::DType::f32, std::as_writable_bytes(std::span(x)));
    return x;
  };
  EXPECT_EQ(weight("tuned", "step_00000030", "conv2.weight"), weight("run", "step_00000010", "conv2.weight"));
  EXPECT_NE(weight("tuned", "step_00000030", "fc1.weight"), weight("run", "step_00000010", "fc1.weight"));
}

// What `classify --report` keeps is on the page of the run.
TEST_F(ImageRuns, ThePageShowsPredictions) {
  run_here(toml(), {});
  const std::string run = files_.folder("run").string(), test = files_.file("test.bin").string();
  const Ended classified = run_kintsugi(files_.folder(""), "classify " + run + " " + test + " --report --show 0");
  ASSERT_EQ(classified.code, 0) << classified.err;
  ASSERT_EQ(run_kintsugi(files_.folder(""), "report " + run).code, 0);
  const std::string page = base::read_file(files_.folder("run") / "report.html");
  EXPECT_EQ(markup_fault(page), "");
  EXPECT_NE(page.find("<h2>Predictions</h2>"), page.npos);
  EXPECT_NE(page.find("<h3>Confusion matrix</h3>"), page.npos);
  const std::string top1 = classified.out.substr(0, classified.out.find('%') + 1);  // "top-1 98.00%"
  EXPECT_NE(page.find(top1), page.npos) << top1;
  size_t images = 0;
  for (size_t at = page.find("<img"); at != page.npos; at = page.find("<img", at + 1)) ++images;
  EXPECT_EQ(images, 48u);
  base::write_file_atomically(files_.folder("run") / "predictions.json", "{");
  const Ended damaged = run_kintsugi(files_.folder(""), "report " + run);
  EXPECT_EQ(damaged.code, 0);
  EXPECT_NE(damaged.err.find("the predictions cannot be shown"), damaged.err.npos) << damaged.err;
  // Logits in the run's folder, and again in their place.
  for (int time = 0; time < 2; ++time) {
    const Ended logits =
        run_kintsugi(files_.folder(""), "classify " + run + " " + test + " --show 0 --output " + run + "/logits.npy");
    EXPECT_EQ(logits.code, 0) << logits.err;
  }
  // Labels that the model does not have.
  base::write_file_atomically(files_.file("hundred.bin"), images::cifar_file({3, 99}, 2));
  const Ended other =
      run_kintsugi(files_.folder(""), "classify " + run + " " + files_.file("hundred.bin").string() + " --show 0");
  EXPECT_EQ(other.code, 1);
  EXPECT_NE(other.err.find("has label 99; the model has classes 0 to 9"), other.err.npos) << other.err;
  const Ended text = run_kintsugi(files_.folder(""), "generate " + run + " --prompt x");
  EXPECT_NE(text.err.find("is a model of images, lenet, and has no text; use kintsugi classify or predict"),
            text.err.npos)
      << text.err;
  const Ended nowhere =
      run_kintsugi(files_.folder(""), "classify " + files_.folder("").string() + " " + test + " --report");
  EXPECT_NE(nowhere.err.find("--report is for the page of a run"), nowhere.err.npos) << nowhere.err;
}

// Batch norms, residuals and their fused kernels: after one epoch of 200 images all classes are known.
TEST_F(ImageRuns, ResNet18Learns) {
  run_here(toml(), {"model.family=resnet18", "train.steps=10", "train.evaluate_every=10", "train.learning_rate=1e-3",
                    "parallel.threads=2"});
  EXPECT_GT(*metrics("run", 10).top1, 0.9);
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
