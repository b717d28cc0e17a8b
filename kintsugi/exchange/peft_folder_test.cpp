// Adapters exported for PEFT and read back with the weights of their base model give the same model, whatever else its
// folders contain.
#include "kintsugi/exchange/peft_folder.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/base/file.h"
#include "kintsugi/exchange/adapters.h"
#include "kintsugi/exchange/random_source_test.h"
#include "kintsugi/exchange/small_models_test.h"
#include "kintsugi/models/lora.h"
#include "kintsugi/models/step.h"

namespace kintsugi::exchange::peft_folder_test {
namespace {

using checkpoint::Box;
using checkpoint::error_of;
using checkpoint::Range;
using checkpoint::ScratchFolder;
using tensor::DType;

config::Settings adapted(std::string_view family) {
  const bool many = family == "mixtral" || family == "qwen3_moe" || family == "olmoe";
  config::Settings s = small_run(family, many ? "experts = 4\nexperts_per_token = 2\n" : "").settings;
  s.lora = {.rank = 3, .alpha = 4.5, .dropout = 0.25, .targets = {}};
  if (s.model.experts > 0) s.lora.targets = {"*"};  // also experts
  return s;
}

constexpr std::string_view kFamilies[] = {"gpt",   "llama",  "gptneox", "gptj",      "phi3",
                                          "qwen3", "gemma3", "mixtral", "qwen3_moe", "deepseek_v3"};

}  // namespace

TEST(Peft, WhatIsWrittenIsReadAgain) {
  for (const std::string_view family : kFamilies) {
    SCOPED_TRACE(family);
    const ScratchFolder scratch;
    const config::Settings s = adapted(family);
    config::Settings base = s;
    base.lora = {};
    const RandomSource source(s);
    std::filesystem::create_directories(scratch / "adapter");
    const ExportedAdapter written = write_adapter(source, s, (scratch / "base").string(), scratch / "adapter");
    EXPECT_GE(written.tensors, 2u * 6u * 4u);
    EXPECT_TRUE(is_adapter_folder(scratch / "adapter"));
    Adapter adapter = read_adapter(scratch / "adapter", base);
    EXPECT_EQ(adapter.lora.rank % 3, 0);
    EXPECT_NEAR(models::lora_scale(adapter.lora), 1.5, 1e-12);
    EXPECT_EQ(adapter.lora.dropout, 0.25);
    config::Settings again = base;
    again.lora = adapter.lora;
    const MergedSource merged(std::make_unique<RandomSource>(s), s),
        read_back(with_adapter(std::make_unique<RandomSource>(base), std::move(adapter), scratch / "adapter"), again);
    size_t changed = 0;
    for (const std::string& name : RandomSource(base).names()) {
      const std::vector<float> want = read(merged, name), got = read(read_back, name), plain = read(source, name);
      for (size_t i = 0; i < want.size(); ++i) ASSERT_NEAR(got[i], want[i], 1e-5) << name << " " << i;
      changed += want != plain;
    }
    EXPECT_EQ(changed, adapted_layers(s).size());
  }
}

// A merged weight is W + s A B, and so is any part of it.
TEST(Peft, MergedWeightsAreTheSum) {
  for (const std::string_view family : {"llama", "olmoe"}) {
    const config::Settings s = adapted(family);
    const RandomSource source(s);
    const MergedSource merged(std::make_unique<RandomSource>(s), s);
    size_t of_experts = 0;
    for (const AdaptedLayer& layer : adapted_layers(s)) {
      of_experts += layer.of_experts();
      const std::vector<float> w = read(source, layer.weight()), whole = read(merged, layer.weight());
      const Factors f = read_factors(source, layer);
      const auto in = static_cast<size_t>(layer.in()), out = static_cast<size_t>(layer.out());
      for (size_t i = 0; i < w.size(); ++i) {
        double sum = w[i];
        for (size_t r = 0; r < 3; ++r) sum += 1.5 * f.a[i / out * 3 + r] * f.b[(i / out / in * 3 + r) * out + i % out];
        ASSERT_NEAR(whole[i], sum, 1e-5) << layer.name;
      }
      std::mt19937 random(5);
      const Box all = checkpoint::whole_box(layer.shape);
      for (int n = 0; n < 20; ++n) {
        Box box = all;
        for (size_t d = 0; d < box.size.size(); ++d) {
          box.start[d] = static_cast<int64_t>(random()) % all.size[d];
          box.size[d] = 1 + static_cast<int64_t>(random()) % (all.size[d] - box.start[d]);
        }
        const int64_t size = box.elements(), begin = static_cast<int64_t>(random()) % size;
        const Range flat = {begin, begin + 1 + static_cast<int64_t>(random()) % (size - begin)};
        const std::vector<float> part = read(merged, layer.weight(), box, flat);
        checkpoint::for_each_common_run(
            {all, checkpoint::whole_range(all)}, {box, flat}, [&](int64_t from, int64_t to, int64_t count) {
              for (int64_t i = 0; i < count; ++i)
                EXPECT_EQ(part[static_cast<size_t>(to + i)], whole[static_cast<size_t>(from + i)]);
            });
      }
    }
    EXPECT_EQ(of_experts, s.model.experts > 0 ? 3u * static_cast<size_t>(s.model.layers) : 0u);
  }
}

// gpt-oss has one tensor for the experts of a layer, which is no module of PEFT.
TEST(Peft, ExpertsInOneTensorHaveNoModules) {
  const ScratchFolder scratch;
  const config::Settings s = adapted("gpt_oss");
  EXPECT_EQ(error_of([&] { write_adapter(RandomSource(s), s, "nowhere", scratch / "a"); }),
            "[model] PEFT has no adapters of gpt_oss, whose folders have one tensor for the experts of a layer: "
            "model.layers.0.mlp.experts.gate_up_proj; leave experts out of lora.targets, or merge them: kintsugi "
            "export --merge");
  config::Settings attention = s;
  attention.lora.targets = {"attention.*"};
  std::filesystem::create_directories(scratch / "b");
  EXPECT_EQ(write_adapter(RandomSource(attention), attention, "nowhere", scratch / "b").tensors,
            static_cast<size_t>(8 * s.model.layers));
}

TEST(Peft, RefusesOtherAdapters) {
  const ScratchFolder scratch;
  const config::Settings s = adapted("llama");
  config::Settings base = s;
  base.lora = {};
  std::filesystem::create_directories(scratch / "a");
  write_adapter(RandomSource(s), s, "nowhere", scratch / "a");
  const std::filesystem::path path = scratch / "a" / "adapter_config.json";
  const std::string good = base::read_file(path);
  const auto error = [&](std::string_view from, std::string_view to) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    base::write_file_atomically(path, text);
    std::string what = error_of([&] { read_adapter(scratch / "a", base); });
    for (const std::string& part : {path.string(), (scratch / "a").string()})
      if (const size_t at = what.find(part); at != what.npos) what.replace(at, part.size(), "A");
    return what;
  };
  EXPECT_EQ(
      error("\"use_dora\": false", "\"use_dora\": true"),
      "[model] \"A\":" +
          std::to_string(
              1 + std::count(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(good.find("use_dora")), '\n')) +
          ": \"use_dora\" is true; it should be absent: such adapters are not computed here");
  EXPECT_NE(error("\"LORA\"", "\"IA3\"").find("it should be \"LORA\""), std::string::npos);
  EXPECT_NE(error("\"bias\": \"none\"", "\"bias\": \"all\"").find("biases are not part of adapters here"),
            std::string::npos);
  EXPECT_EQ(error("\"r\": 3", "\"r\": 2"),
            "[model] \"A\": tensor \"base_model.model.model.layers.0.self_attn.q_proj.lora_A.weight\" must be [2, 24] "
            "for this model and rank");
  base::write_file_atomically(path, good);
  EXPECT_NE(error_of([&] { base_of(scratch / "a"); }).find("it should be a folder that is there"), std::string::npos);
  config::Settings other = small_run("gpt").settings;
  EXPECT_NE(
      error_of([&] { read_adapter(scratch / "a", other); }).find("is not an adapter of a linear layer of this model"),
      std::string::npos);
}

}  // namespace kintsugi::exchange::peft_folder_test
