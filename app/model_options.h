// Options shared by generate and evaluate: a checkpoint, and the ranks that share its model.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "app/verb.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::app {

struct ModelOptions {
  std::string model;
  std::vector<std::string> sets;  // "parallel.key=value"
};

// Adds the options to a verb. The result is filled when the command line is parsed; keep it for the verb's run.
std::shared_ptr<ModelOptions> add_model_options(const Verb& verb);

// Calls f(layout, world) for each rank of this process, on a thread of its own if there are several, after
// check(layout) on the process. All ranks end together; if one fails, all end with its error. Warnings go to stderr,
// once.
using CheckLayout = std::function<void(const config::Parallel& layout)>;
using OnRank = std::function<void(const config::Parallel& layout, comm::World& world)>;
void on_ranks(const std::string& verb, const ModelOptions& options, const CheckLayout& check, const OnRank& f);

// Prints one line on stderr for each axis whose ranks repeat each other's work. `what`: "one text".
void warn_of_repeated(const std::vector<std::string>& axes, const std::string& what);

}  // namespace kintsugi::app
