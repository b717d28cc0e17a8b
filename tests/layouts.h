// Layouts as short texts, and the results of a layout on a small model compared with one rank.
#pragma once

#include <map>
#include <string>

#include "kintsugi/train/layout_run.h"
#include "tests/small_model.h"

namespace kintsugi::tests {

// "data=2 tensor=2 zero=3 sequence_parallel": [parallel] of a run. Words without = are true.
void set_layout(config::Settings& s, const std::string& text);

// Samples as a function of the step and their index in the global batch.
void draw_batch(const config::Settings& s, int64_t step, int64_t m, samples::BatchMemory& batch);

using Numbers = std::map<std::string, std::vector<double>>;

// The results of a run.
struct Record {
  std::vector<double> losses;
  std::vector<Numbers> gradients;  // by step
  Numbers weights;                 // after the last
};

Record record(train::LayoutRun& run, const config::Settings& s, int64_t steps, double learning_rate = 1e-2);

double norm(const Numbers& all);

// "" if losses agree within `tolerance`, and gradients, by name, within `tolerance` of the global norm.
std::string difference(const Record& got, const Record& want, double tolerance);

// A model by its test name, and its layout.
struct ModelLayout {
  std::string model, parallel;
};

void PrintTo(const ModelLayout& l, std::ostream* out);

// Only letters, digits and _, as required for test names.
std::string test_name(const ModelLayout& l);

// The settings of a model on one rank.
using ModelOf = config::Settings (*)(const std::string& model, const std::string& dtype);

Record run_layout(ModelOf model_of, const ModelLayout& l, const std::string& dtype, int64_t steps);

// The result of a model on one rank, computed once.
const Record& twin(ModelOf model_of, const std::string& model, const std::string& dtype, int64_t steps);

}  // namespace kintsugi::tests
