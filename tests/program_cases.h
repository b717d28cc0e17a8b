// Programs that are built, or run, before and after a change that must not change them: the layouts of the tests,
// random plans, memory saved by recomputation or offload, the examples, a very large model.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/plan/plan.h"
#include "kintsugi/program/program.h"

namespace kintsugi::tests {

// A training run. "layouts/gpt data=2 fp32": what it is of, and what it is.
struct TrainingCase {
  std::string name;
  config::Settings settings;
  std::optional<plan::Plan> plan = std::nullopt;  // another than the settings say
  bool small = true;                              // may be run, not only built
};

// `source`: the folder of the project, for its examples.
std::vector<TrainingCase> training_cases(const std::string& source);

// A model as layout_checkpoint.h has it, evaluated in batches or writing text.
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
