// A sweep as its file describes it: which keys of run.toml vary, how their values are chosen, and how many runs at
// once.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::sweep {

enum class Method { grid, random, halving };
std::string_view name_of(Method method);

// A key that varies. Either a list of values, or a range.
struct Dimension {
  std::string key;                       // "train.learning_rate"
  std::vector<std::string> values = {};  // as --set takes them
  double from = 0, to = 0;               // of a range: both ends included
  double step = 0;                       // 0: any value of the range
  bool log = false;                      // uniform in the logarithm
  bool whole = false;                    // integers

  bool is_range() const { return values.empty(); }
};

struct Spec {
  std::string run = "run.toml";
  std::string folder;
  Method method = Method::grid;
  int64_t trials = 0;  // of random and halving
  int64_t ranks = 0;   // of the allocation; 0: those that the process can use
  int64_t seed = 0;
  std::string measure;      // of metrics.jsonl; "": validation_loss, or loss where there is none
  bool maximize = false;    // the larger measure is the better
  int64_t restarts = 3;     // per run, after failures that may not recur
  std::string with;         // command that starts the ranks of a run; {ranks} is filled in
  int64_t eta = 3;          // halving: one of so many runs is kept
  int64_t first_steps = 0;  // halving: steps of the first rung; 0: a ninth of train.steps
  std::vector<std::pair<std::string, std::string>> set;  // the same for all runs
  std::vector<Dimension> search;                         // in the order of the file
};

// `name` is that of the file, for messages. UserError "[sweep] NAME:LINE: ..." for unknown sections and keys, values of
// another type, an empty list, a range whose ends are not in order, and a method whose values are not given.
Spec read_spec(std::string_view text, std::string_view name);

// The values of one run: key and value for each dimension, in their order.
using Values = std::vector<std::pair<std::string, std::string>>;

// Grid: all combinations, the last key fastest; ranges need a step. Random and halving: `trials` draws, independent of
// each other and of the machine (counter-based on seed, trial and key), duplicates of lists left out where all are
// lists. UserError if a range without a step is in a grid, or for more than 100,000 runs.
std::vector<Values> candidates(const Spec& spec);

// Halving (Jamieson and Talwalkar 2016, section 3): the steps up to which runs are trained in each rung, ascending; the
// last is `steps`. In rung k the best 1 / eta of those of rung k - 1 continue, at least one.
std::vector<int64_t> rungs(const Spec& spec, int64_t steps);

}  // namespace kintsugi::sweep
