// Every key of [model] either changes what a family computes, or is refused, or gives a warning; no key does both.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "kintsugi/base/error.h"
#include "kintsugi/config/keys.h"
#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/config/resolved_file.h"
#include "kintsugi/graph/print.h"
#include "kintsugi/models/models.h"
#include "kintsugi/models/step.h"

namespace kintsugi::models::idle_keys_test {
namespace {

using config::Key;

// The smallest sizes of a family, as lines of [model].
struct Sized {
  std::string family, sizes;
};

void PrintTo(const Sized& s, std::ostream* out) {
  *out << s.family;
}

constexpr const char* kImage = "outputs = 3\nimage_channels = 3\nimage_height = 32\nimage_width = 32\n";
constexpr const char* kTokens = "vocab = 40\nlayers = 2\nembed = 16\nheads = 4\ncontext = 8\n";

config::Resolved resolved(const Sized& of, const std::string& set = "") {
  const std::string text = "[model]\nfamily = \"" + of.family + "\"\n" + of.sizes +
                           "[train]\nglobal_batch = 4\nmicro_batch = 2\n[parallel]\nthreads = 1\ndevice = \"cpu\"\n";
  std::vector<std::string> sets;
  if (!set.empty()) sets.push_back(set);
  return config::resolve(config::read_text(text, "run.toml", catalog(), sets), 1);
}

std::string computation(const config::Settings& s) {
  graph::StateTable states;
  const Graph forward = build_forward(s, states);
  return graph::print(forward) + graph::print(states) +
         graph::print(*build_evaluation(s, 2, s.train.sequence).evaluate);
}

// Values of a key other than `now`, as TOML.
std::vector<std::string> values(const Key& key, const config::Value& now) {
  std::vector<config::Value> all;
  if (std::holds_alternative<config::Boolean>(key.allowed)) all = {true, false};
  if (const auto* i = std::get_if<int64_t>(&now)) all = {*i + 1, 2 * *i, int64_t{2}, int64_t{48}};
  if (std::holds_alternative<config::Number>(key.allowed)) all = {0.25, 0.75};
  if (std::holds_alternative<config::Numbers>(key.allowed)) all = {std::vector<double>{0.25}};
  if (const auto* words = std::get_if<config::OneOf>(&key.allowed))
    for (const std::string_view word : words->words) all.emplace_back(std::string(word));
  if (key.name == "window_layers") all = {std::vector<std::string>{"window", "full"}};
  if (key.name == "rotary_layers") all = {std::vector<std::string>{"rotary", "none"}};
  std::vector<std::string> texts;
  for (const config::Value& value : all)
    if (value != now) texts.push_back(config::to_toml(value));
  return texts;
}

class IdleKeys : public testing::TestWithParam<Sized> {};

TEST_P(IdleKeys, HaveAnEffectOrAWarning) {
  const config::Resolved plain = resolved(GetParam());
  ASSERT_TRUE(plain.warnings.empty()) << plain.warnings.front();
  const std::string want = computation(plain.settings);
  int effects = 0, warnings = 0;
  for (const Key& key : config::keys()) {
    // Groups of batch norms on one rank may be those of a micro-batch.
    if (key.section != "model" || key.name == "family" || key.name == "name" || key.name == "batch_norm") continue;
    for (const std::string& value : values(key, key.get(plain.settings))) {
      if (key.name == "stem" && value == "\"small\"") continue;  // what "auto" is for small images
      const std::string set = key.full_name() + "=" + value;
      bool changes = false, warns = false;
      try {
        const config::Resolved r = resolved(GetParam(), set);
        warns = !r.warnings.empty();
        changes = computation(r.settings) != want;
      } catch (const base::UserError&) {
        continue;
      }
      effects += changes, warnings += warns;
      EXPECT_NE(changes, warns) << set
                                << (changes ? " has an effect, and a warning" : " has no effect, and no warning");
    }
  }
  EXPECT_GT(effects, 5);
  EXPECT_GT(warnings, 20);
}

// The file that a run saves has every key.
TEST_P(IdleKeys, OfASavedFileGiveNoWarning) {
  const std::string file = config::to_toml(resolved(GetParam()));
  const config::Resolved again = config::resolve(config::read_text(file, "config.toml", catalog()), 1);
  EXPECT_TRUE(again.warnings.empty()) << again.warnings.front();
}

INSTANTIATE_TEST_SUITE_P(
    All, IdleKeys,
    testing::Values(Sized{"lenet", kImage},
                    Sized{"alexnet",
                          "outputs = 3\nimage_channels = 3\nimage_height = 64\n"
                          "image_width = 64\n"},
                    Sized{"vgg11_bn", kImage}, Sized{"resnet18", kImage}, Sized{"convnext_tiny", kImage},
                    Sized{"unet", std::string(kImage) + "embed = 4\n"},
                    Sized{"cosmoflow", std::string(kImage) + "image_depth = 32\n"},
                    Sized{"vit", std::string(kImage) + "patch = 16\nlayers = 2\nembed = 16\nheads = 4\n"},
                    Sized{"mlp", "outputs = 3\nfeatures = 4\nlayers = 2\nembed = 8\nffn = 8\n"}, Sized{"gpt", kTokens},
                    Sized{"llama", kTokens}, Sized{"bert", kTokens}),
    [](const auto& info) { return info.param.family; });

}  // namespace
}  // namespace kintsugi::models::idle_keys_test
