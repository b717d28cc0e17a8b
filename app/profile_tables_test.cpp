#include "app/profile_tables.h"

#include <gtest/gtest.h>

namespace kintsugi::app {
namespace {

// A step of two ranks on a machine that is `slow` times slower.
train::ProfiledRun run_that_takes(double slow) {
  train::ProfiledRun run;
  run.limits = {.flops = 98.7e9 / slow, .product_flops = 345e9 / slow, .bytes = 45.6e9 / slow};
  for (const int rank : {0, 1}) {
    profile::RankProfile& r = run.profile.of_ranks.emplace_back();
    r = {.rank = rank, .stage = rank, .steps = 3, .seconds = 0.01234 * slow};
    r.waits = {{.rank = 1 - rank, .seconds = 0.00456 * slow}};
    for (const auto& [operation, part] : {std::pair{"attention_grad", profile::Part::compute},
                                          std::pair{"reduce_scatter", profile::Part::communication},
                                          std::pair{"reduce_scatter", profile::Part::waiting}})
      r.operations.push_back({.operation = operation,
                              .phase = "backward.input",
                              .part = part,
                              .calls = 1234,
                              .seconds = 0.00345 * slow,
                              .flops = 1.23e8,
                              .memory_bytes = 2.34e6});
    r.transfers = {{.operation = "reduce_scatter",
                    .over = "data tensor",
                    .calls = 1234,
                    .wire_bytes = 1023.4 * 1024,
                    .seconds = 0.00345 * slow,
                    .waiting = 0.00123 * slow,
                    .timed = 1234,
                    .timed_seconds = 0.00567 * slow,
                    .timed_bytes = 1e6}};
    r.instructions = {{.body = "backward.middle.last",
                       .at = 123,
                       .operation = "reduce_scatter",
                       .phase = "backward",
                       .value = "x",
                       .layer = 12,
                       .communicates = true,
                       .calls = 1234,
                       .seconds = 0.00345 * slow,
                       .waiting = 0.00123 * slow},
                      {.body = "backward.middle.last",
                       .at = 123,
                       .operation = "attention_grad_of_keys",
                       .layer = 12,
                       .calls = 1234,
                       .seconds = 0.00345 * slow,
                       .flops = 1.23e4,
                       .memory_bytes = 1.5e8}};
  }
  return run;
}

}  // namespace

TEST(ProfileTables, FitIn100ColumnsHoweverSlowTheMachineIs) {
  for (double slow = 1e-4; slow < 1e6; slow *= 7) {
    const std::string page = print_profile(run_that_takes(slow));
    for (size_t at = 0, end; (end = page.find('\n', at)) != std::string::npos; at = end + 1)
      EXPECT_LE(end - at, 80u) << page.substr(at, end - at);
  }
}

}  // namespace kintsugi::app
