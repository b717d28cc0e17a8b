// Compiles a configuration to the programs of its ranks: one program per stage, which all ranks of the stage run.
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

// Resolves [parallel] device: `automatic` becomes a GPU if one is usable and supports [train] dtype, else the CPU.
config::Device device_of(const config::Settings& settings);
// Whether fp32 matmuls use TF32, as on a GPU with [parallel] tf32.
bool takes_tf32(const config::Settings& settings);
// If there is a GPU that `automatic` does not use, a line with the reason; else "".
std::string passed_over(const config::Settings& settings);
// Whether that device has its own memory and streams.
bool on_a_device(const config::Settings& settings);

// The kernels to plan a program with; the device need not be present.
std::unique_ptr<kernels::KernelSet> kernels_of(const config::Settings& settings);
// The kernels to run it with, on the device. Throws UserError if the device is not available.
std::unique_ptr<kernels::KernelSet> kernels_to_run(const config::Settings& settings);

// Why algorithms selected for matmuls on a GPU could not be stored for later runs; "" if they can.
std::string products_not_kept(const config::Settings& settings);

// The plan of [parallel] and [train] reproducible.
plan::Plan plan_of(const config::Settings& settings);

// The dims that a plan is checked against: those of the graphs of a training step, or of evaluation or generation.
plan::ModelDims dims_of(const models::Graphs& graphs);

// Throws the UserErrors of plan::check_plan(). For a dim of an image that strides make too small for its axis, they
// also name the smallest image that works.
void check_plan(const config::Settings& settings, const plan::Plan& plan, const models::Graphs& graphs);

// Number of micro-batches per step, on each rank.
int64_t micro_batches(const config::Settings& settings);

// Samples per micro-batch over all ranks.
int64_t samples_of_pass(const config::Settings& settings);

// FLOPs of each layer for a micro-batch over all ranks, including the embedding's in the first and the head's in the
// last: the balance of pipeline stages.
std::vector<double> layer_flops(const config::Settings& settings);
// As above, given the graph of a micro-batch.
std::vector<double> layer_flops(const config::Settings& settings, const graph::Graph& micro);

// What to compile. The settings must be resolved and have a vocabulary; pointers must outlive the call.
struct Request {
  const config::Settings& settings;
  const kernels::KernelSet& kernels;
  const models::Graphs* graphs = nullptr;  // null: a training step with the evaluation in the settings
  const plan::Plan* plan = nullptr;        // null: plan_of(settings); for graphs without a training step plan_from()
  int threads = 0;                         // per rank; 0: parallel.threads
  lower::Extent extent = lower::Extent::verified;  // programs that are only timed cannot evaluate
  lower::Dump dump = {};                           // called after each pass of a training step
};

// The programs of all stages, in order. Throws the UserErrors of check_plan(); a plan in the request is not
// checked.
std::vector<program::Program> compile(const Request& request);

// The program of a plan with one stage. Throws InternalError if there are several.
program::Program only_stage(std::vector<program::Program> stages);

// The program that a rank runs: that of its stage.
program::Program program_of_rank(std::vector<program::Program> stages, int rank);

}  // namespace kintsugi::compile
