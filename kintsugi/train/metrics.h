// What is measured in each step: metrics.jsonl, with one JSON object per step, and the scalars of TensorBoard.
#pragma once

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/report/event_file.h"

namespace kintsugi::train {

// A prompt, and what the model wrote after it; both UTF-8.
struct SampledText {
  std::string prompt, text;
};

struct DomainLoss {
  std::string domain;
  double loss = 0;
};

// Where the loss is scaled, since its gradients are in fp16.
struct Scaling {
  double scale = 1;     // of the next step
  int64_t skipped = 0;  // updates that were not made since the run began, because a gradient overflowed
  bool skips = false;   // this step's update is one
};

struct NamedLoss {
  std::string name;
  double loss = 0;  // mean over the counted tokens of the step, without its weight
};

// Of a model of experts.
struct ExpertUse {
  std::vector<double> tokens;  // of each expert in the step, over all layers
  double busiest = 0;          // tokens of a layer's busiest expert over the mean, the mean over layers
};

struct Metrics {
  int64_t step = 0;                       // steps done
  double loss = 0;                        // mean over the counted tokens of the step
  std::vector<NamedLoss> further = {};    // losses beside that of the objective
  std::optional<ExpertUse> experts = {};
  std::optional<double> validation_loss;  // over all validation files
  std::vector<DomainLoss> domains = {};   // the same of each, if they have names
  // Of models that predict a class: the share of validation samples whose class was predicted, and was among the five
  // likeliest.
  std::optional<double> top1 = {}, top5 = {};
  double learning_rate = 0;
  double gradient_norm = 0;  // of the mean loss, before clipping
  bool unlabelled = false;  // no token or sample of the step has a label: loss 0, no update
  int64_t tokens = 0;        // since the run began
  double tokens_per_second = 0;
  double flops_per_second = 0;            // of the program's operations
  double peak_share = 0;                  // of the measured peak of the threads in use, for products of train.dtype
  int64_t memory_bytes = 0;               // what the run has allocated for its program
  double seconds = 0;                     // of the step
  std::optional<double> planned_seconds;  // of the same, simulated on [parallel] cluster
  std::optional<Scaling> scaling = {};
  std::vector<SampledText> samples = {};  // written after the step, if any were
};

std::string to_json(const Metrics& metrics);
// The same for TensorBoard.
std::vector<report::Scalar> to_scalars(const Metrics& metrics);
std::vector<report::EventText> to_event_texts(const Metrics& metrics);

// The line of that step in a metrics.jsonl; none if it is not there.
std::optional<Metrics> read_step(const std::filesystem::path& path, int64_t step);

// Appends to a file, line by line, each flushed.
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
