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

// What to compile. The settings are resolved and have a vocabulary; what is pointed to outlives the call.
struct Request {
  const config::Settings& settings;
  const kernels::KernelSet& kernels;
  const models::Graphs* graphs = nullptr;  // null: a training step of the settings, with its evaluation
  const plan::Plan* plan = nullptr;        // null: plan_of(settings), of graphs without a training step plan_from()
  int threads = 0;                         // of a rank; 0: parallel.threads
  lower::Extent extent = lower::Extent::verified;  // programs that are only timed cannot evaluate
  lower::Dump dump = {};                           // called after each pass of a training step
};

// The programs of all stages, in order. UserError of plan::check_plan unless the plan divides the dims of the model;
// a plan that the request names is not checked.
std::vector<program::Program> compile(const Request& request);

// The program of a plan with one stage. InternalError if there are several.
program::Program only_stage(std::vector<program::Program> stages);

// The program that a rank runs: that of its stage.
program::Program program_of_rank(std::vector<program::Program> stages, int rank);

}  // namespace kintsugi::compile
