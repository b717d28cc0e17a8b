#include <array>

#include "kintsugi/models/models.h"

namespace kintsugi::models {
namespace {

constexpr std::string_view kGpt2 = "Radford et al. 2019 and the published weights";
constexpr std::string_view kGpt3 = "Brown et al. 2020, table 2.1";
constexpr std::string_view kMegatron = "Shoeybi et al. 2019, table 1";
constexpr std::string_view kMegatron2 = "Narayanan et al. 2021, table 1";
constexpr std::string_view kLlama = "Touvron et al. 2023a, table 2";
constexpr std::string_view kLlama2 = "Touvron et al. 2023b and the published weights";
constexpr std::string_view kLlama3 = "Llama team 2024 and the published weights";
constexpr std::string_view kTinyLlama = "Zhang et al. 2024, table 2";
constexpr std::string_view kKorthikanti = "Korthikanti et al. 2022, table 3";
constexpr std::string_view kLlama31 = "Llama team 2024, table 3";
constexpr std::string_view kPythia = "Biderman et al. 2023, table 1, and the published weights";
constexpr std::string_view kNeox20 = "Black et al. 2022, and the published weights";
constexpr std::string_view kForge = "Yin et al. 2023, table 2";
constexpr std::string_view kGptJ = "Wang, Komatsuzaki 2021, and the published weights";
constexpr std::string_view kMistral = "Jiang et al. 2023, table 1";
constexpr std::string_view kQwen2 = "Yang et al. 2024, table 1, and the published weights";
constexpr std::string_view kQwen3 = "Yang et al. 2025, table 1, and the published weights";
constexpr std::string_view kOlmo2 = "OLMo team 2024, table 3, and the published weights";
constexpr std::string_view kSmolLm3 = "Hugging Face 2025, the published weights";
constexpr std::string_view kPhi3 = "Abdin et al. 2024, section 2, and the published weights";
constexpr std::string_view kGemma3 = "Gemma team 2025, table 1, and the published weights";
constexpr std::string_view kBert = "Devlin et al. 2019, section 3, and the published weights";
constexpr std::string_view kStories = "Karpathy 2023, llama2.c";

config::Model of_family(std::string_view name, std::string_view family_name) {
  config::Model m = family(family_name).config.defaults;
  m.family = family_name;
  m.name = name;
  return m;
}

struct Size {
  int64_t layers, embed, heads, context, vocab;
};

config::NamedSize gpt(std::string_view name, std::string_view source, Size s) {
  config::Model m = of_family(name, "gpt");
  m.layers = s.layers;
  m.embed = s.embed;
  m.heads = m.kv_heads = s.heads;
  m.ffn = 4 * s.embed;
  m.context = s.context;
  m.vocab = s.vocab;
  return {name, source, m};
}

// Sizes of families since Llama.
struct LlamaSize {
  int64_t layers, embed, heads, kv_heads, ffn, context;
};

// Other differences between the sizes of a family; 0: the family's.
struct Rest {
  int64_t vocab = 32000;
  bool tied = false;
  double norm_epsilon = 0.0;
  double rope_theta = 0.0;
  int64_t head_dim = 0;
};

config::NamedSize of(std::string_view family, std::string_view name, std::string_view source, LlamaSize s,
                     Rest rest = {}) {
  config::Model m = of_family(name, family);
  m.layers = s.layers;
  m.embed = s.embed;
  m.heads = s.heads;
  m.kv_heads = s.kv_heads;
  m.ffn = s.ffn;
  m.context = s.context;
  m.vocab = rest.vocab;
  m.tied = rest.tied;
  m.head_dim = rest.head_dim;
  if (rest.norm_epsilon > 0.0) m.norm_epsilon = rest.norm_epsilon;
  if (rest.rope_theta > 0.0) m.rope_theta = rest.rope_theta;
  return {name, source, m};
}

// GPT-NeoX: no grouped heads, ffn = 4 embed.
struct NeoxSize {
  int64_t layers, embed, heads;
};

config::NamedSize neox(std::string_view name, std::string_view source, NeoxSize s, int64_t vocab) {
  config::NamedSize size =
      of("gptneox", name, source, {s.layers, s.embed, s.heads, s.heads, 4 * s.embed, 2048}, {.vocab = vocab});
  size.model.rotary_dims = s.embed / s.heads / 4;
  return size;
}

config::NamedSize pythia(std::string_view name, NeoxSize s, int64_t vocab = 50304) {
  return neox(name, kPythia, s, vocab);
}

// FORGE rotates whole heads; its residual is sequential.
config::NamedSize forge(std::string_view name, NeoxSize s) {
  config::NamedSize size = neox(name, kForge, s, 52000);
  size.model.rotary_dims = 0;
  size.model.residual = "sequential";
  return size;
}

config::NamedSize llama(std::string_view name, std::string_view source, LlamaSize s, Rest rest = {}) {
  return of("llama", name, source, s, rest);
}

// Llama 3.1: scaled positions beyond 8,192.
config::NamedSize llama31(std::string_view name, LlamaSize s) {
  config::NamedSize size = llama(name, kLlama31, s, {.vocab = 128256, .rope_theta = 500000.0});
  size.model.rope_scaling = "llama3";
  size.model.rope_factor = 8.0;
  size.model.rope_original_context = 8192;
  return size;
}

const std::vector<config::NamedSize>& sizes() {
  static const std::vector<config::NamedSize> list = {
      // gpt: layers, embed, heads, context, vocab
      gpt("gpt2", kGpt2, {12, 768, 12, 1024, 50257}),
      gpt("gpt2-medium", kGpt2, {24, 1024, 16, 1024, 50257}),
      gpt("gpt2-large", kGpt2, {36, 1280, 20, 1024, 50257}),
      gpt("gpt2-xl", kGpt2, {48, 1600, 25, 1024, 50257}),
      gpt("gpt3-125m", kGpt3, {12, 768, 12, 2048, 50257}),
      gpt("gpt3-350m", kGpt3, {24, 1024, 16, 2048, 50257}),
      gpt("gpt3-760m", kGpt3, {24, 1536, 16, 2048, 50257}),
      gpt("gpt3-1.3b", kGpt3, {24, 2048, 16, 2048, 50257}),  // 16 heads of the table's 128; its 24 do not divide 2048
      gpt("gpt3-2.7b", kGpt3, {32, 2560, 32, 2048, 50257}),
      gpt("gpt3-6.7b", kGpt3, {32, 4096, 32, 2048, 50257}),
      gpt("gpt3-13b", kGpt3,
          {40, 5120, 40, 2048, 50257}),  // 40 heads of 128; the table's 5140 is presumably a misprint
      gpt("gpt3-175b", kGpt3, {96, 12288, 96, 2048, 50257}),
      gpt("megatron-1.2b", kMegatron, {40, 1536, 16, 1024, 51200}),
      gpt("megatron-2.5b", kMegatron, {54, 1920, 20, 1024, 51200}),
      gpt("megatron-4.2b", kMegatron, {64, 2304, 24, 1024, 51200}),
      gpt("megatron-8.3b", kMegatron, {72, 3072, 32, 1024, 51200}),
      gpt("megatron-1.7b", kMegatron2, {24, 2304, 24, 2048, 51200}),
      gpt("megatron-3.6b", kMegatron2, {30, 3072, 32, 2048, 51200}),
      gpt("megatron-7.5b", kMegatron2, {36, 4096, 32, 2048, 51200}),
      gpt("megatron-18b", kMegatron2, {40, 6144, 48, 2048, 51200}),
      gpt("megatron-39b", kMegatron2, {48, 8192, 64, 2048, 51200}),
      gpt("megatron-76b", kMegatron2, {60, 10240, 80, 2048, 51200}),
      gpt("megatron-145b", kMegatron2, {80, 12288, 96, 2048, 51200}),
      gpt("megatron-310b", kMegatron2, {96, 16384, 128, 2048, 51200}),
      gpt("megatron-530b", kMegatron2, {105, 20480, 128, 2048, 51200}),
      gpt("megatron-1t", kMegatron2, {128, 25600, 160, 2048, 51200}),
      gpt("megatron-22b", kKorthikanti, {48, 6144, 64, 2048, 51200}),
      // llama: layers, embed, heads, kv_heads, ffn, context
      llama("llama-7b", kLlama, {32, 4096, 32, 32, 11008, 2048}, {.norm_epsilon = 1e-6}),
      llama("llama-13b", kLlama, {40, 5120, 40, 40, 13824, 2048}, {.norm_epsilon = 1e-6}),
      llama("llama-33b", kLlama, {60, 6656, 52, 52, 17920, 2048}, {.norm_epsilon = 1e-6}),
      llama("llama-65b", kLlama, {80, 8192, 64, 64, 22016, 2048}, {.norm_epsilon = 1e-6}),
      llama("llama2-7b", kLlama2, {32, 4096, 32, 32, 11008, 4096}),
      llama("llama2-13b", kLlama2, {40, 5120, 40, 40, 13824, 4096}),
      llama("llama2-70b", kLlama2, {80, 8192, 64, 8, 28672, 4096}),
      llama("llama3-8b", kLlama3, {32, 4096, 32, 8, 14336, 8192}, {.vocab = 128256, .rope_theta = 500000.0}),
      llama("llama3-70b", kLlama3, {80, 8192, 64, 8, 28672, 8192}, {.vocab = 128256, .rope_theta = 500000.0}),
      llama31("llama3.1-405b", {126, 16384, 128, 8, 53248, 131072}),
      llama("tinyllama-1.1b", kTinyLlama, {22, 2048, 32, 4, 5632, 2048}),
      llama("stories260k", kStories, {5, 64, 8, 4, 172, 512}, {.vocab = 512, .tied = true}),
      llama("stories15m", kStories, {6, 288, 6, 6, 768, 256}, {.tied = true}),
      llama("stories42m", kStories, {8, 512, 8, 8, 1376, 1024}, {.tied = true}),
      llama("stories110m", kStories, {12, 768, 12, 12, 2048, 1024}, {.tied = true}),
      // gptneox: layers, embed, heads
      pythia("pythia-70m", {6, 512, 8}),
      pythia("pythia-160m", {12, 768, 12}),
      pythia("pythia-410m", {24, 1024, 16}),
      pythia("pythia-1b", {16, 2048, 8}),
      pythia("pythia-1.4b", {24, 2048, 16}),
      pythia("pythia-2.8b", {32, 2560, 32}),
      pythia("pythia-6.9b", {32, 4096, 32}, 50432),
      pythia("pythia-12b", {36, 5120, 40}, 50688),
      neox("gptneox-20b", kNeox20, {44, 6144, 64}, 50432),
      forge("forge-1.4b", {24, 2064, 24}),
      forge("forge-13b", {40, 5120, 40}),
      forge("forge-22b", {48, 6144, 48}),
      of("gptj", "gptj-6b", kGptJ, {28, 4096, 16, 16, 16384, 2048}, {.vocab = 50400}),
      of("mistral", "mistral-7b", kMistral, {32, 4096, 32, 8, 14336, 32768}, {.norm_epsilon = 1e-5}),
      of("qwen2", "qwen2-0.5b", kQwen2, {24, 896, 14, 2, 4864, 131072}, {151936, true, 0.0, 1e6}),
      of("qwen2", "qwen2-1.5b", kQwen2, {28, 1536, 12, 2, 8960, 131072}, {151936, true, 0.0, 1e6}),
      of("qwen2", "qwen2-7b", kQwen2, {28, 3584, 28, 4, 18944, 131072}, {152064, false, 0.0, 1e6}),
      of("qwen2", "qwen2-72b", kQwen2, {80, 8192, 64, 8, 29568, 131072}, {152064, false, 1e-5, 1e6}),
      of("qwen3", "qwen3-0.6b", kQwen3, {28, 1024, 16, 8, 3072, 40960}, {151936, true, 0.0, 1e6, 128}),
      of("qwen3", "qwen3-1.7b", kQwen3, {28, 2048, 16, 8, 6144, 40960}, {151936, true, 0.0, 1e6, 128}),
      of("qwen3", "qwen3-4b", kQwen3, {36, 2560, 32, 8, 9728, 40960}, {151936, true, 0.0, 1e6, 128}),
      of("qwen3", "qwen3-8b", kQwen3, {36, 4096, 32, 8, 12288, 40960}, {151936, false, 0.0, 1e6, 128}),
      of("qwen3", "qwen3-14b", kQwen3, {40, 5120, 40, 8, 17408, 40960}, {151936, false, 0.0, 1e6, 128}),
      of("qwen3", "qwen3-32b", kQwen3, {64, 5120, 64, 8, 25600, 40960}, {151936, false, 0.0, 1e6, 128}),
      of("olmo2", "olmo2-7b", kOlmo2, {32, 4096, 32, 32, 11008, 4096}, {100352, false, 1e-6, 500000.0}),
      of("olmo2", "olmo2-13b", kOlmo2, {40, 5120, 40, 40, 13824, 4096}, {100352, false, 1e-6, 500000.0}),
      of("smollm3", "smollm3-3b", kSmolLm3, {36, 2048, 16, 4, 11008, 65536}, {128256, true, 0.0, 5e6}),
      of("phi3", "phi3-mini", kPhi3, {32, 3072, 32, 32, 8192, 4096}, {.vocab = 32064}),
      of("gemma3", "gemma3-1b", kGemma3, {26, 1152, 4, 1, 6912, 32768}, {262144, true, 0.0, 0.0, 256}),
      of("bert", "bert-base", kBert, {12, 768, 12, 12, 3072, 512}, {30522, true}),
      of("bert", "bert-large", kBert, {24, 1024, 16, 16, 4096, 512}, {30522, true}),
  };
  return list;
}

}  // namespace

std::span<const config::NamedSize> named_sizes() {
  return sizes();
}

}  // namespace kintsugi::models
