// Unusual plans of networks of images: any dims on any axes, in any order, padded or not. A plan may be slow; it cannot
// be wrong.
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "kintsugi/models/models.h"
#include "tests/layouts.h"
#include "tests/small_model.h"

namespace kintsugi::tests::image_plans_test {
namespace {

// "unet:groups" has groups of two samples.
config::Settings image_model(const std::string& name, const std::string& dtype) {
  const std::string family = name.substr(0, name.find(':'));
  config::Settings s = small_model(family, dtype);
  s.model.batch_norm = name.ends_with(":groups") ? "replica" : "all";
  s.model.batch_norm_samples = 2;
  config::Model& m = s.model;
  m.dropout = 0.0;
  m.layers = 2;
  if (const int64_t fixed = models::family(family).config.layers; fixed > 0) m.layers = fixed;
  m.image_channels = 2;
  m.image_mean = {0.3, 0.6};
  m.image_deviation = {0.2, 0.4};
  m.image_height = family == "lenet" ? 17 : 16;
  m.image_width = 16;
  m.embed = family == "unet" ? 2 : 16;
  m.patch = family == "vit" ? 4 : 0;
  s.train.global_batch = 4;
  s.train.micro_batch = 4;
  return s;
}

plan::Plan random_plan(uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto one_of = [&](const std::vector<std::string>& list) { return list[random() % list.size()]; };
  const auto chance = [&](double p) { return std::uniform_real_distribution<>()(random) < p; };
  const auto axes = [&] {
    std::vector<std::string> all = {"a", "b"};
    std::shuffle(all.begin(), all.end(), random);
    all.resize(1 + random() % 2);
    return all;
  };
  std::vector<plan::Rule> rules;
  for (uint64_t i = 2 + random() % 6; i > 0; --i)
    rules.push_back(
        {.dim = one_of({"batch", "height", "width", "channel", "filter", "embed", "ffn", "class"}),
         .axes = axes(),
         .family = one_of({"", "", "", "", "", "convolution", "transposed_convolution", "max_pool", "batch_norm",
                           "relu", "add", "concatenate", "contract", "class_loss", "weight", "optimizer", "gradient"}),
         .pad = chance(0.6)});
  for (const char* family : {"optimizer", "gradient", "weight"})
    if (chance(0.4)) rules.push_back({.dim = "flat", .axes = axes(), .family = family});
  std::shuffle(rules.begin(), rules.end(), random);
  return {.mesh = mesh::Mesh({{"a", 2}, {"b", 1 + static_cast<int64_t>(random() % 3)}}),
          .rules = std::move(rules),
          .keep = chance(0.3),
          .repeat = true};
}

class RandomImagePlans : public testing::TestWithParam<uint64_t> {};

TEST_P(RandomImagePlans, MayBeSlowButNotWrong) {
  constexpr uint64_t kEach = 10;
  for (uint64_t seed = GetParam() * kEach; seed < (GetParam() + 1) * kEach; ++seed) {
    const std::string family = seed % 3 == 0 ? "lenet" : seed % 3 == 2 ? "vit" : seed % 2 == 0 ? "unet" : "unet:groups";
    const config::Settings s = image_model(family, "fp64");
    const plan::Plan plan = random_plan(seed);
    try {
      train::LayoutRun run(s, plan);
      EXPECT_EQ(difference(record(run, s, 1), twin(image_model, family, "fp64", 1), 1e-9), "")
          << family << ", plan " << seed << "\n"
          << plan::print(plan);
    } catch (const std::exception& e) {
      ADD_FAILURE() << family << ", plan " << seed << ": " << e.what() << "\n" << plan::print(plan);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(TenAtATime, RandomImagePlans, testing::Range<uint64_t>(0, 10));

}  // namespace
}  // namespace kintsugi::tests::image_plans_test
