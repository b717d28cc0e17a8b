// `kintsugi explain --bytes`: bytes and FLOPs of the instructions of a training step, the lower bound on their time on
// this machine, and the measured step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "kintsugi/config/settings.h"
#include "kintsugi/program/program.h"

namespace kintsugi::app {

struct BytesOptions {
  bool asked = false;
  int64_t steps = 3;          // that are measured; 0: none
  std::filesystem::path csv;  // a file for every instruction; empty: none
};

// UserError for a device whose limits are not measured. Runs the steps on all ranks in this process.
std::string explain_bytes(const config::Settings& settings, const std::vector<program::Program>& stages,
                          const BytesOptions& options);

}  // namespace kintsugi::app
