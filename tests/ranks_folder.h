// A folder with a run.toml of a small model for several ranks, and the files of its runs.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "tests/process.h"

namespace kintsugi::tests {

class RanksFolder {
 protected:
  RanksFolder();

  // `layout`: "data=2 zero=3", keys of [parallel].
  static std::string arguments(const std::string& run, const std::string& layout, const std::string& sets = "");

  // The lines of metrics.jsonl.
  int64_t steps(const std::string& run) const;

  // "" if both runs have the same steps and numbers, to a relative `tolerance`.
  std::string difference(const std::string& one, const std::string& other, double tolerance) const;

  // The errors and warnings, without the warning about oversubscribed cores.
  static std::string complaint(const std::string& err);

  TemporaryFolder folder;
};

}  // namespace kintsugi::tests
