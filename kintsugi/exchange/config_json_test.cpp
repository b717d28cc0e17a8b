#include "kintsugi/exchange/config_json.h"

#include <gtest/gtest.h>

#include <cmath>

#include "kintsugi/base/error.h"
#include "kintsugi/config/choices.h"

namespace kintsugi::exchange::config_json_test {

// A config.json of a small Llama with additional members, or the error text.
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

constexpr const char* kGrouped = "\"num_key_value_heads\": 2";

TEST(ConfigJson, AbsentKeysAreTheFamilys) {
  const FolderConfig llama = read("");
  EXPECT_EQ(llama.dtype, tensor::DType::f32);
  EXPECT_EQ(llama.model.family, "llama");
  EXPECT_EQ(llama.model.kv_heads, 4);
  EXPECT_EQ(llama.model.head_dim, 4);
  EXPECT_EQ(llama.model.norm_epsilon, 1e-6);
  EXPECT_FALSE(llama.model.tied);
  EXPECT_EQ(read(kGrouped, "qwen3").model.head_dim, 128);
  EXPECT_EQ(read("\"head_dim\": null").model.head_dim, 4);
}

// Sizes too; null means derived.
TEST(ConfigJson, AbsentSizesAreTheFamilys) {
  const auto alone = [](const std::string& type) {
    return read_config("config.json", R"({"model_type": ")" + type + "\"}").model;
  };
  struct Sizes {
    const char* type;
    int64_t vocab, embed, ffn, layers, heads, kv_heads, context;
    double epsilon;
    bool tied;
  };
  for (const Sizes& s : std::vector<Sizes>{{"llama", 32000, 4096, 11008, 32, 32, 32, 2048, 1e-6, false},
                                           {"mistral", 32000, 4096, 14336, 32, 32, 8, 131072, 1e-6, false},
                                           {"qwen2", 151936, 4096, 22016, 32, 32, 32, 32768, 1e-6, false},
                                           {"qwen3", 151936, 4096, 22016, 32, 32, 32, 32768, 1e-6, false},
                                           {"olmo2", 50304, 4096, 11008, 32, 32, 32, 2048, 1e-5, false},
                                           {"olmo3", 50304, 4096, 11008, 32, 32, 32, 2048, 1e-5, false},
                                           {"smollm3", 128256, 2048, 11008, 36, 16, 4, 32768, 1e-6, true},
                                           {"phi3", 32064, 3072, 8192, 32, 32, 32, 4096, 1e-5, false},
                                           {"gemma3_text", 262208, 2304, 9216, 26, 8, 4, 131072, 1e-6, true},
                                           {"gpt_neox", 50432, 6144, 24576, 44, 64, 64, 2048, 1e-5, false},
                                           {"gptj", 50400, 4096, 16384, 28, 16, 16, 2048, 1e-5, false},
                                           {"gpt2", 50257, 768, 3072, 12, 12, 12, 1024, 1e-5, true},
                                           {"bert", 30522, 768, 3072, 12, 12, 12, 512, 1e-12, true}}) {
    const config::Model m = alone(s.type);
    EXPECT_EQ((std::vector{m.vocab, m.embed, m.ffn, m.layers, m.heads, m.kv_heads, m.context}),
              (std::vector{s.vocab, s.embed, s.ffn, s.layers, s.heads, s.kv_heads, s.context}))
        << s.type;
    EXPECT_EQ(m.norm_epsilon, s.epsilon) << s.type;
    EXPECT_EQ(m.tied, s.tied) << s.type;
  }
  EXPECT_EQ(read("\"num_key_value_heads\": null", "mistral").model.kv_heads, 4);
}

// Other members of published folders.
TEST(ConfigJson, KeysThatChangeNothing) {
  const std::string gpt = R"({"model_type": "gpt2", "n_embd": 64, "n_head": 4, "n_layer": 2, "vocab_size": 50, )";
  EXPECT_EQ(read_config("config.json", gpt + R"("n_special": 0, "predict_special_tokens": true, "output_past": true,
    "hidden_size": 64, "task_specific_params": {"text-generation": {"do_sample": true}}})")
                .model.embed,
            64);
  EXPECT_EQ(read_config("config.json", R"({"model_type": "gptj", "hidden_size": 64, "num_attention_heads": 4,
    "num_hidden_layers": 2, "rotary_dim": 16, "vocab_size": 50, "max_position_embeddings": 32})")
                .model.context,
            32);
  try {
    read_config("config.json", gpt + "\"hidden_size\": 32}");
    FAIL();
  } catch (const base::UserError& e) {
    EXPECT_STREQ(e.what(), "[model] \"config.json\":1: \"hidden_size\" is 32, and \"n_embd\", which is the same, 64");
  }
  EXPECT_EQ(error_of("\"is_llama_config\": true, \"max_sequence_length\": 2048, \"max_length\": 20, \"top_k\": 50, "
                     "\"transformers.js_config\": {\"dtype\": \"q4\"}, \"num_labels\": 2, \"rope_interleaved\": false"),
            "no error");
  EXPECT_EQ(error_of("\"directionality\": \"bidi\", \"pooler_type\": \"first_token_transform\"", "bert"), "no error");
  EXPECT_EQ(error_of("\"full_attn_mod\": 1, \"interpolate_factor\": 1", "phi3"), "no error");
  EXPECT_EQ(error_of("\"full_attn_mod\": 2", "phi3"),
            "[model] \"config.json\":2: \"full_attn_mod\" is 2; here there is only 1");
  EXPECT_EQ(error_of("\"pruned_heads\": {}", "bert"), "no error");
  EXPECT_EQ(error_of("\"pruned_heads\": {\"0\": [1]}", "bert").substr(0, 45),
            "[model] \"config.json\":2: \"pruned_heads\" is an");
}

// Keys left by tools that the family's models do not read.
TEST(ConfigJson, ForeignKeysArePassedOver) {
  EXPECT_TRUE(read("\"use_cache\": true, \"logit_scale\": null, \"unsloth_fixed\": false").notes.empty());
  EXPECT_EQ(read("\"unsloth_version\": \"2025.1\", \"logit_scale\": 0.5").notes,
            (std::vector<std::string>{
                "config.json: \"unsloth_version\", \"logit_scale\" are not used by this family and ignored"}));
  EXPECT_EQ(read("\"sliding_window\": 4096").notes.size(), 1u);
  // If the family has one window for all layers, transformers ignores it.
  EXPECT_EQ(read(R"("layer_types": ["full_attention"])", "phi3").notes.size(), 1u);
  EXPECT_EQ(error_of(R"("logit_scale": 0.5, "auto_map": {"AutoModelForCausalLM": "modeling_x.X"})"),
            "[model] \"config.json\":2: \"logit_scale\" is 0.5, an unknown setting, and according to \"auto_map\" the "
            "folder has its own code, which may read it");
  EXPECT_EQ(error_of("\"is_causal\": false"),
            "[model] \"config.json\":2: \"is_causal\" is false; here there is only true");
  EXPECT_EQ(error_of("\"attention_chunk_size\": 8192").substr(0, 57),
            "[model] \"config.json\":2: \"attention_chunk_size\" is 8192; ");
  // For all families whose modules read it, though their published configurations lack it.
  for (const char* type : {"olmo2", "olmo3", "olmoe", "qwen2", "phi3", "smollm3"})
    EXPECT_EQ(read("\"num_key_value_heads\": 2, \"head_dim\": 6", type).model.head_dim, 6) << type;
}

// Nothing is scaled up to max_position_embeddings, which no text exceeds.
TEST(ConfigJson, DynamicScalingIsNoneWithinTheContext) {
  EXPECT_EQ(read(R"("rope_scaling": {"type": "dynamic", "factor": 2.0})").model, read("").model);
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
  const std::string grouped = kGrouped;
  EXPECT_EQ(read(grouped, "mistral").model.window, 4096);
  EXPECT_EQ(read(grouped + ", \"sliding_window\": null", "mistral").model.window, 0);
  EXPECT_EQ(read(grouped + ", \"sliding_window\": 8", "qwen2").model.window, 0);  // not switched on
  const std::string on = grouped + ", \"sliding_window\": 8, \"use_sliding_window\": true";
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
  EXPECT_EQ(error_of("\"logit_scale\": null, \"use_moe\": false"), "no error");
  EXPECT_EQ(error_of("\"hidden_act\": \"swish2\""),
            "[model] \"config.json\":2: \"hidden_act\" is \"swish2\", which is not known here");
  EXPECT_EQ(
      error_of(R"("rope_scaling": {"rope_type": "ntk", "factor": 2.0})"),
      "[model] \"config.json\":2: rope_type \"ntk\" is not known here; there are default, linear, dynamic, llama3, "
      "yarn, longrope");
  // A family that rotates whole heads, and one that does not.
  const std::string part = R"("rope_parameters": {"rope_theta": 1e4, "partial_rotary_factor": 0.5})";
  for (const std::string& text : {part, std::string(R"("partial_rotary_factor": 0.5)")})
    EXPECT_EQ(error_of(text),
              "[model] \"config.json\":1: \"partial_rotary_factor\" rotates 2 of 4 dims of a head; models of this "
              "family rotate all");
  EXPECT_EQ(error_of(R"("partial_rotary_factor": 1.0)"), "no error");
  EXPECT_EQ(read(part, "phi3").model.rotary_dims, 2);
  EXPECT_EQ(read(part, "gpt_neox").model.rotary_dims, 2);
  EXPECT_EQ(error_of(R"("rope_scaling": {"rope_type": "linear"})"), "[model] \"config.json\":2: \"factor\" is missing");
  EXPECT_EQ(error_of(R"("quantization_config": {"bits": 4})"),
            "[model] \"config.json\":2: \"quantization_config\": quantized weights are not supported; dequantize "
            "them to bfloat16 first, for example with transformers");
  EXPECT_EQ(error_of(R"("quantization_config": {"quant_method": "mxfp4"})"),
            "[model] \"config.json\":2: \"quantization_config\": quantized weights (mxfp4) are not supported; "
            "dequantize them to bfloat16 first, for example with transformers");
  EXPECT_EQ(error_of("\"num_key_value_heads\": 3"),
            "[config] config.json, as [model]:8: model.heads = 4 is not divisible by model.kv_heads = 3; nearest "
            "kv_heads: 2, 4");
  EXPECT_EQ(
      error_of(R"("rope_scaling": {"type": "linear", "factor": 4.0}, "rope_parameters": {"rope_type": "default"})"),
      "[model] \"config.json\":2: \"rope_scaling\" and \"rope_parameters\" differ; keep one of them");
  EXPECT_NE(error_of("\"layer_types\": [\"full_attention\"]", "qwen2").find("has 1 items for 4 layers"),
            std::string::npos);
}

// Keys that differ after a round trip but compute the same.
TEST(ConfigJson, WhatComputesTheSameIsWritten) {
  config::Model m = read("\"num_key_value_heads\": 2, \"head_dim\": 4", "gemma3_text").model;
  m.window_layers = {"window", "window", "window", "window", "window", "full"};  // of 4 layers
  m.attention_scale = 0.0;                                                       // 1 / sqrt(head_dim)
  EXPECT_EQ(why_not_exported(m), "");
  EXPECT_NE(write_config(m, tensor::DType::f32).find("\"query_pre_attn_scalar\": 4"), std::string::npos);
  m.attention_scale = 0.5;
  EXPECT_EQ(why_not_exported(m), "");
  m = read("\"num_key_value_heads\": 2, \"layer_types\": null", "olmo3").model;
  m.window_layers = {"window", "window", "window", "full", "full"};
  EXPECT_EQ(why_not_exported(m), "");
  m = read(kGrouped, "smollm3").model;
  m.rotary_layers = {"rotary", "rotary", "rotary", "none", "none", "none"};
  EXPECT_EQ(why_not_exported(m), "");
  m = read(R"("rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4]},
              "original_max_position_embeddings": 16)",
           "phi3")
          .model;
  m.rope_magnitude = 0.0;
  EXPECT_EQ(why_not_exported(m), "");
  m.rope_low_factor = 3.0;  // another scaling's
  EXPECT_EQ(why_not_exported(m), "");
  m.window = 4;
  m.rotary_interleaved = true;
  EXPECT_EQ(why_not_exported(m),
            "config.json of the family phi3 cannot say model.rotary_interleaved = true; it would be read as false");
}

// What transformers cannot represent is refused, not lost.
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

// config.json could describe them, and the classes of these families refuse them.
TEST(ConfigJson, WhatTransformersRefuses) {
  config::Model m = read(R"("rope_scaling": {"type": "longrope", "short_factor": [1, 2], "long_factor": [3, 4]},
                            "original_max_position_embeddings": 16)",
                         "phi3")
                        .model;
  m.head_dim = 2 * config::width_of_head(m);
  m.rope_short_factors = m.rope_long_factors = {1, 2, 3, 4};
  EXPECT_EQ(why_not_exported(m),
            "transformers loads the family phi3 with longrope only with head_dim = embed / heads, not 8");
  m.rope_scaling = "linear";
  m.rope_factor = 2;
  EXPECT_EQ(why_not_exported(m),
            "transformers loads the family phi3 only with rope_scaling = \"longrope\", not \"linear\"");
  m = read(R"("num_experts": 4, "num_experts_per_tok": 2)", "olmoe").model;
  EXPECT_EQ(why_not_exported(m), "");
  m.head_dim = 2 * config::width_of_head(m);
  EXPECT_EQ(why_not_exported(m), "transformers loads the family olmoe only with head_dim = embed / heads, not 8");
  m = read(kGrouped).model;
  m.head_dim = 2 * config::width_of_head(m);
  EXPECT_EQ(why_not_exported(m), "");
}

// transformers' own defaults, GPT-2's 50256 for example, may exceed the vocabulary.
TEST(ConfigJson, TokenIdsAreWritten) {
  const config::Model m = read(kGrouped).model;
  const std::string none = write_config(m, tensor::DType::f32);
  EXPECT_NE(none.find("\"bos_token_id\": null,\n  \"eos_token_id\": null"), std::string::npos) << none;
  const std::string one = write_config(m, tensor::DType::f32, {.begin = 3, .ends = {4}});
  EXPECT_NE(one.find("\"bos_token_id\": 3,\n  \"eos_token_id\": 4,"), std::string::npos) << one;
  const std::string two = write_config(m, tensor::DType::f32, {.begin = {}, .ends = {4, 5}});
  EXPECT_NE(two.find("\"bos_token_id\": null,\n  \"eos_token_id\": [\n    4,\n    5\n  ]"), std::string::npos) << two;
}

}  // namespace kintsugi::exchange::config_json_test
