// Random runs as users may write them: the keys of [model], the layouts of [parallel], on the CPU and the emulated
// device, each compared with one rank; on the device also with the stand-ins of libraries, in the programs of their
// tests. KINTSUGI_RANDOM_RUNS=200 ctest -R RandomRuns draws that many for each test; KINTSUGI_RANDOM_SEED draws others.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/config/read.h"
#include "kintsugi/config/resolve.h"
#include "kintsugi/exchange/folder_catalog.h"
#include "kintsugi/train/compare.h"
#include "kintsugi/train/random_samples.h"

namespace kintsugi::tests::random_runs_test {
namespace {

using Sets = std::vector<std::string>;

// With attention that a library supports: 16 bits, heads of 8 or 16, only causal masking.
#ifdef KINTSUGI_RANDOM_PLAIN
constexpr bool kPlain = true;
#else
constexpr bool kPlain = false;
#endif

class Draws {
 protected:
  explicit Draws(uint64_t seed) : random_(seed) {}

  template <typename T>
  T one_of(std::initializer_list<T> list) {
    return *(list.begin() + static_cast<std::ptrdiff_t>(random_() % list.size()));
  }
  bool chance(uint64_t percent) { return random_() % 100 < percent; }
  template <typename T>
  void set(std::string_view key, const T& value) {
    sets_.push_back(fmt::format("{}={}", key, value));
  }
  template <typename T>
  void maybe(uint64_t percent, std::string_view key, std::initializer_list<T> list) {
    if (chance(percent)) set(key, one_of(list));
  }

  std::mt19937_64 random_;
  Sets sets_;
};

class Drawn : Draws {
 public:
  explicit Drawn(uint64_t seed) : Draws(seed), of_experts_(seed) {}

  Sets sets(std::string_view device) {
    set("parallel.device", std::string(device));
    draw_model();
    draw_training(device);
    draw_layout();
    draw_experts(device);
    return std::move(sets_);
  }

 private:
  void draw_model() {
    set("model.family", one_of({"gpt", "llama", "bert", "mistral", "qwen2", "qwen3", "gemma3", "phi3", "gptneox",
                                "gptj", "olmo2", "smollm3"}));
    const int heads = one_of({2, 4, 4, 8}), head_dim = kPlain ? one_of({8, 16}) : one_of({4, 8, 16, 24});
    set("model.heads", heads), set("model.head_dim", head_dim);
    set("model.kv_heads", one_of({heads, heads, heads / 2, 1}));
    set("model.embed", one_of({std::max(heads * head_dim, 16), 40, 48, 64}));  // 8 in bf16 are too few for a norm
    set("model.rotary_dims", one_of({0, 4}));
    set("model.layers", layers_ = one_of({2, 2, 3, 4}));
    set("model.vocab", one_of({64, 97, 131}));
    maybe(50, "model.ffn", {56, 72, 96});
    if (!kPlain) maybe(20, "model.dropout", {0.1, 0.5});
    maybe(20, "model.tied", {true, false});
    maybe(25, "model.norm_place", {"before", "after", "output", "both"});
    maybe(15, "model.query_key_norm", {"none", "head", "all"});
    maybe(10, "model.residual", {"sequential", "parallel", "parallel_one_norm"});
    maybe(15, "model.activation", {"gelu", "gelu_tanh", "silu"});
    maybe(15, "model.gated", {true, false});
    maybe(15, "model.bias", {true, false});
    if (!kPlain) {
      maybe(20, "model.window", {3, 5, 8});
      maybe(10, "model.attention_softcap", {20});
    }
    maybe(10, "model.positions", {"learned", "rotary", "none"});
  }

  void draw_training(std::string_view device) {
    set("train.steps", 10);  // as the rate of the first two depends on it
    set("train.sequence", one_of({8, 16, 24, 30}));
    set("train.global_batch", 8);
    const std::string dtype = kPlain            ? "bf16"
                              : device == "cpu" ? one_of({"fp32", "fp64", "bf16"})
                                                : one_of({"fp32", "fp32", "bf16"});
    set("train.dtype", dtype);
    // With AdamW's usual epsilon, a weight whose gradient is zero up to rounding takes a full step in a direction that
    // depends on rounding, and the gradients of the second step then differ by more than rounding.
    set("train.epsilon", dtype == "bf16" ? 1e-2 : 1e-5);
    maybe(20, "train.optimizer", {"sgd"});
    maybe(50, "train.micro_batch", {1, 2});
    set("train.seed", random_() % 1000);
  }

  void draw_layout() {
    int data = 1, tensor = 1, context = 1, pipe = 1;
    for (int left = one_of({1, 2, 2, 3}); left > 0; --left) *one_of({&data, &tensor, &context, &pipe}) *= 2;
    if (pipe > layers_) data *= pipe / 2, pipe = 2;
    set("parallel.data", data), set("parallel.tensor", tensor);
    set("parallel.context", context), set("parallel.pipe", pipe);
    if (data > 1) set("parallel.zero", one_of({0, 1, 2, 3}));
    if (tensor > 1 && chance(50)) set("parallel.sequence_parallel", true);
    if (context > 1) set("parallel.context_method", one_of({"gathered", "ring", "ulysses"}));
    if (pipe > 1) {
      const bool apart = 2 * pipe <= layers_ && chance(40);
      set("parallel.schedule", apart ? "interleaved" : one_of({"gpipe", "1f1b", "zero_bubble"}));
      if (apart) set("parallel.chunks", 2);
    }
    maybe(60, "parallel.recompute", {"light", "selective", "full"});
    maybe(20, "parallel.keep_gathered", {true});
  }

  // Of a third of the models that are not in bf16, nor in fp16 on a device, where rounding decides which expert a token
  // uses. Drawn apart, so that all else stays.
  void draw_experts(std::string_view device) {
    const auto below = [&](uint64_t n) { return of_experts_() % n; };
    const auto has = [&](std::string_view given) { return std::ranges::find(sets_, given) != sets_.end(); };
    const bool narrow = has("train.dtype=bf16") || (device != "cpu" && has("train.dtype=fp16"));
    if (below(3) != 0 || narrow) return;
    const uint64_t experts = below(2) ? 4 : 8, groups = below(3) ? 1 : 2;
    set("model.experts", experts);
    set("model.expert_groups", groups), set("model.groups_per_token", 1 + below(groups));
    set("model.experts_per_token", 1 + below(2));
    if (below(3) == 0) set("model.router_scores", "sigmoid");
    if (below(3) == 0) set("model.router_normalize", "false");
    if (below(3) == 0) set("model.router_linear_bias", "true");
    if (below(3) == 0) set("model.shared_experts", 1 + below(2));
    if (below(3) == 0) set("model.dense_layers", 1);
    if (below(3) == 0) set("train.z_loss", 0.01);
    if (below(2) == 0) set("train.balance", below(2) ? "bias" : "both");
    if (below(2) == 0) set("parallel.expert", 2);
  }

  std::mt19937_64 of_experts_;
  int layers_ = 1;
};

// Networks of images.
class DrawnImages : Draws {
 public:
  explicit DrawnImages(uint64_t seed) : Draws(seed) {}

  Sets sets(std::string_view device) {
    const bool on_cpu = device == "cpu";
    const std::string family =
        on_cpu ? one_of({"lenet", "lenet", "unet", "vit"}) : one_of({"lenet", "lenet", "vit"});  // devices lack fp64
    set("model.family", family), set("parallel.device", std::string(device));
    draw_model(family);
    set("train.steps", 10), set("train.global_batch", 8), set("train.seed", random_() % 1000);
    // Few numbers per channel amplify the rounding of a batch norm, and small gradients that of AdamW's step.
    const std::string dtype = !on_cpu ? "fp32" : family == "unet" ? "fp64" : one_of({"fp32", "fp64"});
    set("train.dtype", dtype);
    set("train.optimizer", dtype == "fp64" ? one_of({"sgd", "adamw"}) : "sgd"), set("train.epsilon", 1e-5);
    maybe(50, "train.micro_batch", {1, 2});
    draw_layout(family);
    draw_fields(family);
    if (family == "unet") maybe(40, "model.batch_norm", {"replica"});
    return std::move(sets_);
  }

 private:
  // Instead of classes.
  void draw_fields(std::string_view family) {
    const auto is = [](std::string_view key) {
      return [key](const std::string& given) { return given.starts_with(key); };
    };
    if (family == "lenet" || std::ranges::any_of(sets_, is("train.label_smoothing")) || chance(50)) return;
    std::erase_if(sets_, is("model.class_token"));
    set("model.objective", "fields"), set("train.loss", one_of({"mse", "relative_l2"}));
  }

  void draw_model(std::string_view family) {
    const int parts = family == "vit" ? 4 : family == "unet" ? 16 : 1;
    const auto size = [&] { return parts == 1 ? one_of({17, 20, 28, 33}) : parts * one_of({1, 2, 3}); };
    set("model.image_height", size()), set("model.image_width", size());
    set("model.image_channels", one_of({1, 3, 4})), set("model.image_dtype", one_of({"uint8", "uint8", "fp32"}));
    set("model.outputs", one_of({2, 5, 10}));
    if (family == "unet") {
      set("model.embed", one_of({1, 2, 3}));
      if (chance(30)) set("model.image_depth", 16);
      return;
    }
    maybe(20, "model.dropout", {0.1, 0.5});
    maybe(20, "train.mixup", {0.2, 1.0});
    maybe(30, "train.label_smoothing", {0.1});
    if (family != "vit") return;
    const int heads = one_of({2, 4});
    set("model.patch", parts), set("model.heads", heads), set("model.embed", heads * one_of({4, 8, 12}));
    set("model.layers", one_of({2, 3})), set("model.class_token", chance(50));
    maybe(30, "model.drop_path", {0.2});
  }

  void draw_layout(std::string_view family) {
    int data = 1, tensor = 1, space = 1, pipe = 1;
    for (int left = one_of({1, 2, 2, 3}); left > 0; --left)
      *(family == "vit" ? one_of({&data, &tensor, &pipe}) : one_of({&data, &tensor, &space, &space, &pipe})) *= 2;
    if (space == 2 && chance(40)) space = 3;
    if (pipe > 2) data *= pipe / 2, pipe = 2;
    set("parallel.data", data), set("parallel.tensor", tensor);
    set("parallel.space", space), set("parallel.pipe", pipe);
    if (space > 1) maybe(60, "parallel.space_dims", {"width", "height width", "width height"});
    if (data > 1) set("parallel.zero", one_of({0, 1, 2, 3}));
    if (pipe > 1) set("parallel.schedule", one_of({"gpipe", "1f1b", "zero_bubble"}));
    maybe(40, "parallel.recompute", {"light", "full"});
    maybe(20, "parallel.keep_gathered", {true});
  }
};

// "": equal; otherwise the difference. Null if the keys cannot be combined.
std::optional<std::string> difference(const Sets& sets) {
  try {
    const config::Resolved resolved =
        config::resolve(config::read_text("", "run.toml", exchange::catalog_with_folders(), sets), 2);
    const config::Settings& s = resolved.settings;
    const train::RandomSamples samples(s);
    const double tolerance = train::default_tolerance(s);
    const train::Comparison c = train::compare(
        {.settings = s, .data = samples, .steps = 2, .tolerance = tolerance, .loss_tolerance = tolerance / 10});
    return c.first() == nullptr ? "" : train::print(c);
  } catch (const base::UserError&) {
    return std::nullopt;
  } catch (const std::exception& e) {
    return e.what();
  }
}

uint64_t number_or(const char* name, uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

struct Case {
  std::string device;
  uint64_t which;
  bool of_images = false;
};
void PrintTo(const Case& c, std::ostream* out) {
  *out << c.device << " " << c.which;
}

class RandomRuns : public testing::TestWithParam<Case> {};

TEST_P(RandomRuns, AreTheSameOnOneRank) {
  const auto& [device, which, of_images] = GetParam();
  const uint64_t runs = number_or("KINTSUGI_RANDOM_RUNS", 12), first = number_or("KINTSUGI_RANDOM_SEED", 1) * 1'000'000;
  uint64_t done = 0;
  for (uint64_t i = 0; i < runs; ++i) {
    const uint64_t seed = first + which * 100'000 + i;
    const Sets sets = of_images ? DrawnImages(seed).sets(device) : Drawn(seed).sets(device);
    const auto found = difference(sets);
    done += found.has_value();
    EXPECT_EQ(found.value_or(""), "") << "kintsugi compare run.toml --random --steps 2 --set "
                                      << fmt::format("{}", fmt::join(sets, " "));
  }
  std::printf("%lu of %lu runs compared, the others refused\n", done, runs);
  EXPECT_GE(2 * done, runs);
}

#ifdef KINTSUGI_STANDINS  // whose folder it is
INSTANTIATE_TEST_SUITE_P(Devices, RandomRuns, testing::Values(Case{"emulated", 6}));
#else
INSTANTIATE_TEST_SUITE_P(Devices, RandomRuns,
                         testing::Values(Case{"cpu", 0}, Case{"cpu", 1}, Case{"emulated", 2}, Case{"emulated", 3},
                                         Case{"emulated", 4}, Case{"emulated", 5}, Case{"cpu", 7, true},
                                         Case{"emulated", 8, true}));
#endif

}  // namespace
}  // namespace kintsugi::tests::random_runs_test
