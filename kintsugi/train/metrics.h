// Measurements of each step: metrics.jsonl, with one JSON object per step, and TensorBoard scalars.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/report/event_file.h"

namespace kintsugi::train {

// A prompt and its continuation by the model; both UTF-8.
struct SampledText {
  std::string prompt, text;
};

struct DomainLoss {
  std::string domain;
  double loss = 0;
};

// A metric of an evaluation task, "acc" of "piqa".
struct TaskScore {
  std::string task, metric;
  double value = 0;
  std::optional<double> standard_error = {};
};

// Loss scaling, for fp16 gradients.
struct Scaling {
  double scale = 1;     // of the next step
  int64_t skipped = 0;  // updates skipped since the run began, because a gradient overflowed
  bool skips = false;   // whether this step's update is skipped
};

struct NamedLoss {
  std::string name;
  double loss = 0;  // mean over the counted tokens of the step, unweighted
};

// For mixture-of-experts models.
struct ExpertUse {
  std::vector<double> tokens;  // per expert in the step, over all layers
  double busiest = 0;          // tokens of a layer's busiest expert relative to the mean, averaged over layers
  // With train.expert_overflow "drop": choices of tokens without a slot of the expert, over all layers.
  std::optional<int64_t> dropped = {};
};

// For preferences: means over the pairs of the step, or of validation.
struct PreferenceUse {
  double reward_margin = 0;  // beta times (log-ratio of the chosen answer - that of the rejected one)
  double accuracy = 0;       // share of pairs whose margin is positive
};

// For rewards: of the answers sampled for the step.
struct RolloutUse {
  double reward = 0;   // mean
  double spread = 0;   // share of groups whose rewards differ
  double length = 0;   // mean number of tokens
  double gap = 0;      // mean absolute difference of log-probabilities between sampling and training, per token
  double seconds = 0;  // of sampling and rewards
};

struct Metrics {
  int64_t step = 0;                     // completed
  double loss = 0;                      // mean over the counted tokens of the step
  std::vector<NamedLoss> further = {};  // losses in addition to the objective's
  std::optional<ExpertUse> experts = {};
  std::optional<double> validation_loss;  // over all validation files
  std::vector<DomainLoss> domains = {};   // per validation file, if they are named
  // For classifiers: share of validation samples whose class was predicted, or was among the five most likely.
  std::optional<double> top1 = {}, top5 = {};
  // For fields: the root mean square error of validation samples, and that of each channel.
  std::optional<double> rmse = {};
  std::vector<double> rmse_channels = {};
  std::optional<PreferenceUse> preferences = {}, validation_preferences = {};
  std::optional<RolloutUse> rollouts = {};
  std::optional<double> validation_reward = {};
  std::optional<double> bits_per_byte = {};             // of the loss, per byte of the counted tokens' texts
  std::optional<double> validation_bits_per_byte = {};  // over all validation files
  double learning_rate = 0;
  double gradient_norm = 0;  // of the mean loss, before clipping
  bool unlabelled = false;   // no token or sample of the step has a label: loss 0, no update
  int64_t tokens = 0;        // since the run began
  double tokens_per_second = 0;
  double flops_per_second = 0;  // of the program's operations
  double peak_share = 0;        // relative to the measured matmul peak of the threads in use, in train.dtype
  int64_t memory_bytes = 0;     // allocated by the run for its program
  double seconds = 0;           // of the step
  // Of the checkpoint completed since the previous step: time that the run waited for it, and that it was then written
  // in the background.
  std::optional<double> stage_seconds = {}, drain_seconds = {};
  std::optional<double> planned_seconds;  // predicted by simulation on [parallel] cluster
  std::optional<Scaling> scaling = {};
  std::vector<TaskScore> tasks = {};      // evaluated after the step, if any
  std::vector<SampledText> samples = {};  // generated after the step, if any
};

std::string to_json(const Metrics& metrics);
// As TensorBoard scalars and texts.
std::vector<report::Scalar> to_scalars(const Metrics& metrics);
std::vector<report::EventText> to_event_texts(const Metrics& metrics);

// The line of that step in a metrics.jsonl; nothing if it is missing.
std::optional<Metrics> read_step(const std::filesystem::path& path, int64_t step);

// Appends lines to a file, flushing each.
class MetricsFile {
 public:
  // Keeps the lines of steps up to `last_step` and removes the rest, including an incomplete line.
  MetricsFile(const std::filesystem::path& path, int64_t last_step);
  ~MetricsFile();
  MetricsFile(const MetricsFile&) = delete;
  MetricsFile& operator=(const MetricsFile&) = delete;

  void write(const Metrics& metrics);  // UserError if the disk is full
  void require_there() const;          // UserError if the file was removed or replaced: what was written is lost

 private:
  std::filesystem::path path_;
  std::FILE* file_ = nullptr;
};

}  // namespace kintsugi::train
