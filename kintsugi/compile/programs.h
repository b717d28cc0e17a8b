// From a configuration to the programs of its ranks: one program for each stage, which all ranks of the stage run.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "kintsugi/config/choices.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/kernels/kernel_set.h"
#include "kintsugi/lower/lower.h"
#include "kintsugi/models/step.h"
#include "kintsugi/plan/model_dims.h"
#include "kintsugi/program/program.h"

namespace kintsugi::compile {

// [parallel] device, where `automatic` is a card that can be used and computes in [train] dtype, or else the processor.
config::Device device_of(const config::Settings& settings);
// Whether products of fp32 take their operands in TF32, as a card's do where [parallel] tf32 is set.
bool takes_tf32(const config::Settings& settings);
// Where a card is there that `automatic` does not take: a line that says why. Else "".
std::string passed_over(const config::Settings& settings);
// Whether that has memory and streams of its own.
bool on_a_device(const config::Settings& settings);

// What a program is planned with: the kernels of the device, which need not be there.
std::unique_ptr<kernels::KernelSet> kernels_of(const config::Settings& settings);
// What it is run with, on the device. UserError if the device is not to be had.
std::unique_ptr<kernels::KernelSet> kernels_to_run(const config::Settings& settings);

// Why the algorithms that are chosen for products on a card would not be kept for later runs; "" if they are.
std::string products_not_kept(const config::Settings& settings);

// The plan of [parallel] and [train] reproducible.
plan::Plan plan_of(const config::Settings& settings);

// The dims that a plan is checked against: of the graphs of a training step, or of evaluation or generation.
plan::ModelDims dims_of(const models::Graphs& graphs);

// Micro-batches of a step on each rank.
int64_t micro_batches(const config::Settings& settings);

// Samples of a micro-batch on all ranks together.
int64_t samples_of_pass(const config::Settings& settings);

// Of each layer of a micro-batch on all ranks together, the embedding's and the head's with the first and the last:
// what the stages of a pipeline are cut by.
std::vector<double> layer_flops(const config::Settings& settings);
// The same, of the graph of a micro-batch that was made already.
std::vector<double> layer_flops(const config::Settings& settings, const graph::Graph& micro);

// Training: micro-batch, update and evaluation over one set of states. Needs resolved settings with a vocabulary.
// `plan`: used instead of that of the settings.
std::vector<program::Program> build_programs(const config::Settings& settings, const kernels::KernelSet& kernels,
                                             const lower::Dump& dump = {});
std::vector<program::Program> build_programs(const config::Settings& settings, const kernels::KernelSet& kernels,
                                             const plan::Plan& plan, const lower::Dump& dump = {});

// The same for graphs of a training step.
std::vector<program::Program> build_programs(const config::Settings& settings, models::Graphs training,
                                             const kernels::KernelSet& kernels, const plan::Plan& plan,
                                             lower::Extent extent = lower::Extent::verified);

// Evaluation or generation, for the given graphs.
std::vector<program::Program> build_programs(const models::Graphs& graphs, const plan::Plan& plan,
                                             const kernels::KernelSet& kernels, int threads);

// The same, but first checks the plan of the settings against the model: UserError of plan::check_plan if it does not
// fit. For evaluation and generation `settings` are those that the graphs were built from.
std::vector<program::Program> checked_programs(const config::Settings& settings, const kernels::KernelSet& kernels,
                                               const lower::Dump& dump = {});
// Of training, not verified. Those that are only timed cannot evaluate.
std::vector<program::Program> unverified_programs(const config::Settings& settings, const kernels::KernelSet& kernels,
                                                  lower::Extent extent);
std::vector<program::Program> checked_programs(const models::Graphs& graphs, const config::Settings& settings,
                                               const kernels::KernelSet& kernels);

// The program of all ranks, if the plan has one stage; the second form compiles graphs for one rank.
program::Program build_program(const config::Settings& settings, const kernels::KernelSet& kernels);
program::Program build_program(const models::Graphs& graphs, const kernels::KernelSet& kernels, int threads);

// The program that a rank runs: that of its stage.
program::Program program_of_rank(std::vector<program::Program> stages, int rank);

}  // namespace kintsugi::compile
