// Programs that are compiled, or run, before and after a change that must not affect them: the layouts of the tests,
// random plans, recomputation, offload, the examples, a very large model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/program.h"

namespace kintsugi::tests {

// A training run. "layouts/gpt data=2 fp32": its group and its settings.
struct TrainingCase {
  std::string name;
  config::Settings settings;
  std::optional<plan::Plan> plan = std::nullopt;  // another than the settings say
  bool small = true;                              // may be run, not only built
};

// `source`: the project's folder, for its examples.
std::vector<TrainingCase> training_cases(const std::string& source);

// A model as in layout_checkpoint.h, evaluated in batches or generating text.
struct ModelCase {
  std::string name;
  std::string model, layout;
  int64_t batch = 0;   // of evaluation, or 0
  int64_t prompt = 0;  // length of the prefill program of generation, or 0
};

constexpr int64_t kSamples = 19;  // that are evaluated

std::vector<ModelCase> model_cases();

// Programs by name: those of training_cases and of model_cases.
struct ProgramCase {
  std::string name;
  std::function<std::vector<program::Program>()> build;
};

std::vector<ProgramCase> program_cases(const std::string& source);

}  // namespace kintsugi::tests
