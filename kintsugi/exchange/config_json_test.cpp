#include "kintsugi/exchange/config_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"

namespace kintsugi::exchange::config_json_test {

// A config.json of a small Llama with further members, or an error's text.
FolderConfig read(const std::string& more, const std::string& type = "llama") {
  return read_config("config.json", R"({"model_type": ")" + type + R"(", "vocab_size": 50, "hidden_size": 16,
    "intermediate_size": 24, "num_hidden_layers": 4, "num_attention_heads": 4, "max_position_embeddings": 64)" +
                                        (more.empty() ? "" : ", " + more) + "}");
}

std::string error_of(const std::string& more, const std::string& type = "llama") {
  try {
    read(more, type);
  } catch (const base::UserError& e) {
    return e.what();
  }
  return "no error";
}

TEST(ConfigJson, AbsentKeysAreTheFamilys) {
  const FolderConfig llama = read("");
  EXPECT_EQ(llama.dtype, tensor::DType::f32);
  EXPECT_EQ(llama.model.family, "llama");
  EXPECT_EQ(llama.model.kv_heads, 4);
  EXPECT_EQ(llama.model.head_dim, 4);
  EXPECT_EQ(llama.model.norm_epsilon, 1e-6);
  EXPECT_FALSE(llama.model.tied);
  EXPECT_EQ(read("", "qwen3").model.head_dim, 128);
  EXPECT_EQ(read("\"head_dim\": null").model.head_dim, 4);
}

TEST(ConfigJson, RotaryPositionsOfBothVersions) {
  for (const char* text :
       {R"("rope_theta": 5e5, "rope_scaling": {"type": "linear", "factor": 4.0}, "torch_dtype": "bfloat16")",
        R"("rope_parameters": {"rope_theta": 5e5, "rope_type": "linear", "factor": 4.0}, "dtype": "bfloat16")"}) {
    const FolderConfig c = read(text);
    EXPECT_EQ(c.dtype, tensor::DType::bf16) << text;
    EXPECT_EQ(c.model.rope_theta, 5e5) << text;
    EXPECT_EQ(c.model.rope_scaling, "linear") << text;
    EXPECT_EQ(c.model.rope_factor, 4.0) << text;
  }
  const config::Model yarn =
      read(R"("rope_scaling": {"rope_type": "yarn", "factor": 4.0, "mscale": 1.0, "mscale_all_dim": 0.5})").model;
  EXPECT_EQ(yarn.rope_original_context, 64);  // that of the model where it is not said
  EXPECT_NEAR(yarn.rope_magnitude, (0.1 * std::log(4.0) + 1.0) / (0.05 * std::log(4.0) + 1.0), 1e-15);
}

TEST(ConfigJson, Windows) {
  EXPECT_EQ(read("", "mistral").model.window, 4096);
  EXPECT_EQ(read("\"sliding_window\": null", "mistral").model.window, 0);
  EXPECT_EQ(read("\"sliding_window\": 8", "qwen2").model.window, 0);  // not switched on
  const std::string on = "\"sliding_window\": 8, \"use_sliding_window\": true";
  EXPECT_EQ(read(on, "qwen2").model.window, 0);  // from layer 28 on
  const config::Model late = read(on + ", \"max_window_layers\": 3", "qwen2").model;
  EXPECT_EQ(late.window, 8);
  EXPECT_EQ(late.window_layers, (std::vector<std::string>{"full", "full", "full", "window"}));
  const config::Model by_type =
      read(on + R"(, "layer_types": ["full_attention", "sliding_attention", "full_attention", "sliding_attention"])",
           "qwen2")
          .model;
  EXPECT_EQ(by_type.window_layers, (std::vector<std::string>{"full", "window"}));
}

TEST(ConfigJson, Refusals) {
  EXPECT_EQ(error_of("", "mamba").substr(0, 75),
            "[model] \"config.json\":1: the model_type \"mamba\" is not known here; there ar");
  EXPECT_EQ(
      error_of("\"logit_scale\": 0.5"),
      "[model] \"config.json\":2: \"logit_scale\" is 0.5, a setting that is not known here; without knowing what it "
      "does the model would be another");
  EXPECT_EQ(error_of("\"logit_scale\": null, \"use_moe\": false"), "no error");
  EXPECT_EQ(error_of("\"hidden_act\": \"swish2\""),
            "[model] \"config.json\":2: \"hidden_act\" is \"swish2\", which is not known here");
  EXPECT_EQ(
      error_of(R"("rope_scaling": {"rope_type": "dynamic", "factor": 2.0})"),
      "[model] \"config.json\":2: rope_type \"dynamic\" is not known here; there are default, linear, llama3, yarn, "
      "longrope");
  EXPECT_EQ(error_of(R"("rope_scaling": {"rope_type": "linear"})"), "[model] \"config.json\":2: \"factor\" is missing");
  EXPECT_EQ(error_of(R"("quantization_config": {"bits": 4})"),
            "[model] \"config.json\":2: \"quantization_config\": quantized weights are not known here");
  EXPECT_EQ(error_of("\"num_key_value_heads\": 3"),
            "[config] config.json, as [model]:8: model.heads = 4 is not divisible by model.kv_heads = 3; nearest "
            "kv_heads: 2, 4");
  EXPECT_NE(error_of("\"layer_types\": [\"full_attention\"]", "qwen2").find("has 1 items for 4 layers"),
            std::string::npos);
}

// What transformers could not say is refused, not lost.
TEST(ConfigJson, WhatAFolderCannotSay) {
  config::Model m = read("").model;
  m.norm = "layer";
  try {
    write_config(m, tensor::DType::f32);
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_STREQ(
        e.what(),
        "[model] config.json of the family llama cannot say model.norm = \"layer\"; it would be read as \"rms\"");
  }
}

}  // namespace kintsugi::exchange::config_json_test
