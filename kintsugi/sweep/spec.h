// A sweep as specified by its file: the keys of run.toml that vary, how their values are chosen, and how many runs are
// concurrent.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kintsugi::sweep {

// population: population-based training (Jaderberg et al. 2017).
enum class Method { grid, random, halving, population };
std::string_view name_of(Method method);

// A key that varies: either a list of values or a range.
struct Dimension {
  std::string key;                       // "train.learning_rate"
  std::vector<std::string> values = {};  // in the syntax of --set
  double from = 0, to = 0;               // inclusive ends of a range
  double step = 0;                       // 0: any value of the range
  bool log = false;                      // uniform in the logarithm
  bool whole = false;                    // integers

  bool is_range() const { return values.empty(); }
};

struct Spec {
  std::string run = "run.toml";
  std::string folder;
  Method method = Method::grid;
  int64_t trials = 0;  // of all but grid
  int64_t ranks = 0;   // of the allocation; 0: those available to the process
  int64_t seed = 0;
  std::string measure;      // of metrics.jsonl; "": validation_loss, or loss if there is none
  bool maximize = false;    // larger is better
  int64_t restarts = 3;     // per run, after failures that may not recur
  std::string with;         // command that starts the ranks of a run; substitutes {ranks}
  int64_t eta = 3;          // halving: keep one of this many runs
  int64_t first_steps = 0;  // halving: steps of the first rung; 0: a ninth of train.steps. Population: steps between
                            // exchanges; 0: a tenth
  std::vector<std::pair<std::string, std::string>> set;  // common to all runs
  std::vector<Dimension> search;                         // in file order
};

// `name` is the file's, for messages. Throws UserError "[sweep] NAME:LINE: ..." for unknown sections and keys, values
// of another type, an empty list, a range with ends out of order, and a method without its values.
Spec read_spec(std::string_view text, std::string_view name);

// The values of one run: key and value for each dimension, in order.
using Values = std::vector<std::pair<std::string, std::string>>;

// Grid: all combinations, last key fastest; ranges require a step. Random and halving: `trials` samples, independent of
// each other and of the machine (counter-based on seed, trial and key), without duplicates if all dimensions are lists.
// Throws UserError if a grid has a range without a step, or for more than 100,000 runs.
std::vector<Values> candidates(const Spec& spec);

// The values of a run of a population that takes over the weights of another: those of the other, each range times 0.8
// or 1.25 (integers change by at least 1), each list moved by one value, within their ends. Depends on seed, trial and
// round.
Values perturbed(const Spec& spec, const Values& other, int64_t trial, int64_t round);

// Uniform in [0, 1), from the seed and three numbers.
double uniform_of(const Spec& spec, int64_t trial, int64_t dimension);

// Successive halving (Jamieson and Talwalkar 2016, section 3): the ascending steps to which each rung trains its runs;
// the last is `steps`. The best 1 / eta of rung k - 1, at least one, continue in rung k. Of a population: equal steps
// between exchanges.
std::vector<int64_t> rungs(const Spec& spec, int64_t steps);

}  // namespace kintsugi::sweep
