// Options shared by generate and evaluate: a checkpoint, and the ranks that share its model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/progress.h"
#include "app/verb.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/origin.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::evaluate {
class CheckpointModel;
}

namespace kintsugi::app {

struct ModelOptions {
  std::string model;
  bool best = false;              // of a run's folder, the checkpoint with the best validation loss
  std::vector<std::string> sets;  // "parallel.key=value"
  bool average = false;           // the moving averages of the weights instead of the weights
  std::string dtype;              // of weights and computation; empty: that of training
};

// Adds the options to a verb. The result is filled when the command line is parsed; keep it for the verb's run.
std::shared_ptr<ModelOptions> add_model_options(const Verb& verb);

// Of a run's folder with --best: names the best checkpoint instead. UserError "[verb] ..." if the folder has none.
void find_best(const std::string& verb, ModelOptions& options);

// Calls f(layout, world) for each rank of this process, on a thread of its own if there are several, after
// check(layout) on the process. All ranks end together; if one fails, all end with its error. Warnings go to stderr,
// once.
using CheckLayout = std::function<void(const config::Parallel& layout)>;
using OnRank = std::function<void(const config::Parallel& layout, comm::World& world)>;
void on_ranks(const std::string& verb, const ModelOptions& options, const CheckLayout& check, const OnRank& f);

// The warnings of a layout, one line each, on stderr.
void print_warnings(const config::Resolved& layout);

// Prints one line for each axis whose ranks repeat each other's work. `what`: "one text".
// What was passed over in the model's folder.
void print_notes(const std::vector<std::string>& notes, Progress& progress);

void warn_of_repeated(const std::vector<std::string>& axes, const std::string& what, Progress& progress);

// Throws UserError "[verb] ..." unless the model reads tokens and has a tokenizer.
void require_tokenizer(const std::string& verb, const evaluate::CheckpointModel& model);

// Says that caches have fewer positions than the model, unless the user named their number.
void note_positions(int64_t positions, int64_t most, bool named, Progress& progress);

}  // namespace kintsugi::app
