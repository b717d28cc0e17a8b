// Keys with enumerated texts as types: parsed here once, compared nowhere else.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "kintsugi/config/settings.h"

namespace kintsugi::config {

// [parallel] recompute, by increasing amount.
enum class Recomputed : uint8_t { nothing, light, attention, layers };
Recomputed recomputed(const Parallel& parallel);
std::string_view name_of(Recomputed what);  // as written in the key

// [parallel] device; the words are in enumerator order.
enum class Device : uint8_t { automatic, cpu, reference, emulated, cuda };
inline constexpr std::array<std::string_view, 5> kDevices = {"auto", "cpu", "reference", "emulated", "cuda"};
Device device(const Parallel& parallel);
std::string_view name_of(Device device);  // as written in the key

// [parallel] offload.
struct Offloaded {
  bool optimizer = false;
  bool activations = false;
};
Offloaded offloaded(const Parallel& parallel);
std::string_view name_of(Offloaded what);  // as written in the key

// [model]; each list of words is in enumerator order.
enum class Norm : uint8_t { layer, rms, rms_plus_one };
inline constexpr std::array<std::string_view, 3> kNorms = {"layer", "rms", "rms_plus_one"};
Norm norm(const Model& model);

// For attention and feed-forward, with f the layer: x + f(norm(x)), norm(x + f(x)), x + norm(f(x)), x +
// norm(f(norm(x))).
enum class NormPlace : uint8_t { before, after, output, both };
inline constexpr std::array<std::string_view, 4> kNormPlaces = {"before", "after", "output", "both"};
NormPlace norm_place(const Model& model);

// Normalization of queries and keys: per head, or over all heads together.
enum class QueryKeyNorm : uint8_t { none, head, all };
inline constexpr std::array<std::string_view, 3> kQueryKeyNorms = {"none", "head", "all"};
QueryKeyNorm query_key_norm(const Model& model);

// The samples whose statistics a batch norm uses: all of a pass, or those of one data replica.
enum class BatchNorm : uint8_t { all, replica };
inline constexpr std::array<std::string_view, 2> kBatchNorms = {"all", "replica"};
BatchNorm batch_norm(const Model& model);
// The number of consecutive samples that share batch statistics; 0: all of a pass.
int64_t batch_norm_group(const Settings& settings);

// Attention, then feed-forward; or both applied to the same x, with separate norms or one.
enum class Residual : uint8_t { sequential, parallel, parallel_one_norm };
inline constexpr std::array<std::string_view, 3> kResiduals = {"sequential", "parallel", "parallel_one_norm"};
Residual residual(const Model& model);

// How expert scores are computed from the router's logits.
enum class RouterScores : uint8_t { softmax, sigmoid };
inline constexpr std::array<std::string_view, 2> kRouterScores = {"softmax", "sigmoid"};

// [train] balance.
enum class Balance : uint8_t { none, loss, bias, both, global };
inline constexpr std::array<std::string_view, 5> kExpertBalances = {"none", "loss", "bias", "both", "global"};
Balance balance(const Train& train);
bool has_balance_loss(Balance balance);  // per sample, or global
bool has_balance_bias(Balance balance);

// Whether the feed-forward layer of a layer is a mixture of experts.
bool has_experts(const Model& model, int64_t layer);
// Inner width of a dense feed-forward layer.
int64_t dense_width(const Model& model);

// Slots of an expert for the tokens of a sample of length `sequence`; bound: [train] expert_bound, 0: one per token.
int64_t expert_capacity(const Model& model, int64_t sequence, double bound);

enum class Positions : uint8_t { learned, rotary, none };
inline constexpr std::array<std::string_view, 3> kPositions = {"learned", "rotary", "none"};
Positions positions(const Model& model);

// First layer of a ResNet: one 3x3 convolution, or a 7x7 convolution of stride 2 and a max pool; automatic: the first
// for images of up to 64 pixels.
enum class Stem : uint8_t { automatic, small, large };
inline constexpr std::array<std::string_view, 3> kStems = {"auto", "small", "large"};
Stem stem(const Model& model);

enum class RopeScaling : uint8_t { none, linear, llama3, yarn, longrope };
inline constexpr std::array<std::string_view, 5> kRopeScalings = {"none", "linear", "llama3", "yarn", "longrope"};
RopeScaling rope_scaling(const Model& model);

// The training objective: the next token; masked tokens; these plus next-segment prediction; a class per sample;
// numbers per sample; a class per pixel of a sample; numbers per pixel.
enum class Objective : uint8_t { next, masked, masked_next, classes, numbers, pixels, fields };
inline constexpr std::array<std::string_view, 7> kObjectives = {"next",    "masked", "masked_next", "classes",
                                                                "numbers", "pixels", "fields"};
Objective objective(const Model& model);
// [train] loss, of fields: the mean of squared differences over all elements, or the mean over samples of
// ||y - targets|| / ||targets||.
enum class FieldLoss : uint8_t { mse, relative_l2 };
inline constexpr std::array<std::string_view, 2> kFieldLosses = {"mse", "relative_l2"};
FieldLoss field_loss(const Train& train);
// [train] method: the log-likelihood of the data, preferences, or rewards of sampled answers.
enum class Method : uint8_t { likelihood, dpo, grpo };
inline constexpr std::array<std::string_view, 3> kMethods = {"likelihood", "dpo", "grpo"};
Method method(const Train& train);
// [grpo] reward.
enum class Reward : uint8_t { exact, number, pattern, program };
inline constexpr std::array<std::string_view, 4> kRewards = {"exact", "number", "pattern", "program"};
Reward reward(const Grpo& grpo);

// Whether there is a loss per token, and per sample.
bool of_tokens(Objective objective);
bool of_samples(Objective objective);

// Whether attention separates documents, or a sample from its padding.
bool separates_documents(const Settings& settings);
// Whether windows of tokens begin with data.first_token.
bool begins_samples(const Settings& settings);

// Multi-head latent attention (DeepSeek-V2 2024, section 2.1).
bool has_latent_attention(const Model& model);
int64_t width_of_value(const Model& model);  // per head

// head_dim, or embed / heads if not set. With latent attention, the larger of the widths of keys and values.
int64_t width_of_head(const Model& model);

// Sets the biases of queries, keys, values, output, feed-forward and norms.
void set_biases(Model& model, bool biases);

// The entries of window_layers and rotary_layers, which repeat over the layers.
inline constexpr std::array<std::string_view, 2> kWindowLayers = {"full", "window"};
inline constexpr std::array<std::string_view, 2> kRotaryLayers = {"none", "rotary"};
bool has_window(const Model& model, int64_t layer);
bool has_rotary(const Model& model, int64_t layer);

}  // namespace kintsugi::config
