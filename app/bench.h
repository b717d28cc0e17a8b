// `kintsugi bench`: measurements of the machine, and the cluster file for the planner.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "app/run_options.h"

namespace kintsugi::app {

struct BenchOptions {
  RunOptions run;                // of products
  std::optional<int64_t> ranks;  // that are measured at once
  int64_t threads = 1;           // of a rank
  std::string transport = "auto";
  std::vector<std::string> sizes;  // of values, as "1 MiB"
  int64_t steps = 3;
  std::string into;  // the cluster file; empty: none
};

// Each prints its tables; with `into`, it writes the results that the planner reads. bench_machine creates the file,
// the others add to it.
void bench_machine(const BenchOptions& options);
void bench_collectives(const BenchOptions& options);
void bench_products(const BenchOptions& options);

}  // namespace kintsugi::app
