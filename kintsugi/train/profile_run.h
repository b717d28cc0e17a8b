// Measures some steps of a training program on all of its ranks.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/profile/rank_profile.h"
#include "kintsugi/program/program.h"
#include "kintsugi/train/limits.h"

namespace kintsugi::train {

struct ProfileOptions {
  const config::Settings& settings;             // resolved, with a vocabulary
  const std::vector<program::Program>& stages;  // verified; the same on all ranks
  int64_t warm_up = 2, steps = 5;
  bool trace = false;
  std::function<void(std::string_view)> now = {};                // current activity; on rank 0
  std::function<void(int64_t done, int64_t all)> progress = {};  // in steps; on rank 0
};

// On rank 0; empty on the others.
struct ProfiledRun {
  profile::StepProfile profile;  // of every rank, with instructions
  Limits limits;                 // measured by all ranks of a machine concurrently: mean over ranks
  std::string trace;             // for Perfetto, if requested
};

// States have their initial values and samples are random, since times do not depend on them. Collective. Throws
// UserError if memory does not suffice.
ProfiledRun profile_run(const ProfileOptions& options, std::span<const std::unique_ptr<comm::World>> worlds);

}  // namespace kintsugi::train
