#include "kintsugi/config/named_sizes.h"

#include <array>

namespace kintsugi::config {
namespace {

constexpr std::string_view kGpt2 = "Radford et al. 2019 and the published weights";
constexpr std::string_view kGpt3 = "Brown et al. 2020, table 2.1";
constexpr std::string_view kMegatron = "Shoeybi et al. 2019, table 1";
constexpr std::string_view kMegatron2 = "Narayanan et al. 2021, table 1";
constexpr std::string_view kLlama = "Touvron et al. 2023a, table 2";
constexpr std::string_view kLlama2 = "Touvron et al. 2023b and the published weights";
constexpr std::string_view kLlama3 = "Llama team 2024 and the published weights";
constexpr std::string_view kTinyLlama = "Zhang et al. 2024, table 2";
constexpr std::string_view kStories = "Karpathy 2023, llama2.c";

struct Size {
  int64_t layers, embed, heads, context, vocab;
};

constexpr NamedSize gpt(std::string_view name, std::string_view source, Size s) {
  return {name,    source,    "gpt", s.layers, s.embed,     s.heads, s.heads, 4 * s.embed,
          s.vocab, s.context, true,  true,     "gelu_tanh", 1e-5,    10000.0};
}

struct LlamaSize {
  int64_t layers, embed, heads, kv_heads, ffn, context;
};

struct LlamaRest {
  int64_t vocab = 32000;
  bool tied = false;
  double norm_epsilon = 1e-5;
  double rope_theta = 10000.0;
};

constexpr NamedSize llama(std::string_view name, std::string_view source, LlamaSize s, LlamaRest rest = {}) {
  return {name,       source,    "llama", s.layers,  s.embed, s.heads,           s.kv_heads,     s.ffn,
          rest.vocab, s.context, false,   rest.tied, "silu",  rest.norm_epsilon, rest.rope_theta};
}

constexpr std::array kSizes = {
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
    gpt("gpt3-13b", kGpt3, {40, 5120, 40, 2048, 50257}),  // 40 heads of 128; the table's 5140 is taken for a misprint
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
    llama("tinyllama-1.1b", kTinyLlama, {22, 2048, 32, 4, 5632, 2048}),
    llama("stories260k", kStories, {5, 64, 8, 4, 172, 512}, {.vocab = 512, .tied = true}),
    llama("stories15m", kStories, {6, 288, 6, 6, 768, 256}, {.tied = true}),
    llama("stories42m", kStories, {8, 512, 8, 8, 1376, 1024}, {.tied = true}),
    llama("stories110m", kStories, {12, 768, 12, 12, 2048, 1024}, {.tied = true}),
};

}  // namespace

std::span<const NamedSize> named_sizes() {
  return kSizes;
}

const NamedSize* find_named_size(std::string_view name) {
  for (const NamedSize& size : kSizes)
    if (size.name == name) return &size;
  return nullptr;
}

std::vector<std::string_view> named_size_names() {
  std::vector<std::string_view> names;
  for (const NamedSize& size : kSizes) names.push_back(size.name);
  return names;
}

Model model_of(const NamedSize& s) {
  Model m;
  m.family = s.family;
  m.name = s.name;
  m.layers = s.layers;
  m.embed = s.embed;
  m.heads = s.heads;
  m.kv_heads = s.kv_heads;
  m.ffn = s.ffn;
  m.vocab = s.vocab;
  m.context = s.context;
  m.bias = s.bias;
  m.tied = s.tied;
  m.activation = s.activation;
  m.norm_epsilon = s.norm_epsilon;
  m.rope_theta = s.rope_theta;
  return m;
}

}  // namespace kintsugi::config
