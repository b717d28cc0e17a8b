// From settings to the program of a training run.
#pragma once

#include <memory>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/lower/lower.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/model_dims.h"
#include "kintsugi/program/program.h"

namespace kintsugi::train {

// [train] kernels.
std::unique_ptr<kernels::KernelSet> kernels_of(const config::Settings& settings);

// What [parallel] and [train] reproducible say.
plan::Plan plan_of(const config::Settings& settings);

// What a plan is checked against, of the graphs of a training step.
plan::ModelDims dims_of(const models::Graphs& graphs);

// micro-batch, update and evaluation over one set of states, for each stage. Needs resolved settings with a vocabulary.
// UserError of plan::check_plan where the plan does not fit the model.
std::vector<program::Program> build_programs(const config::Settings& settings, const kernels::KernelSet& kernels,
                                             const lower::Dump& dump = {});

// The same by another plan than the settings say, which is not checked.
std::vector<program::Program> build_programs(const config::Settings& settings, const kernels::KernelSet& kernels,
                                             const plan::Plan& plan, const lower::Dump& dump = {});

// The program of all ranks, where the plan has one stage.
program::Program build_program(const config::Settings& settings, const kernels::KernelSet& kernels);

// Micro-batches of a step on each rank.
int64_t micro_batches(const config::Settings& settings);

}  // namespace kintsugi::train
