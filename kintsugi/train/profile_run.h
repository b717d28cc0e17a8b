// Some steps of a training program on all of its ranks, measured.
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
  const std::vector<program::Program>& stages;  // checked; the same on all ranks
  int64_t warm_up = 2, steps = 5;
  bool trace = false;
  std::function<void(std::string_view)> now = {};                // told what is done; on rank 0
  std::function<void(int64_t done, int64_t all)> progress = {};  // of steps; on rank 0
};

// On rank 0; of the others it is empty.
struct ProfiledRun {
  profile::StepProfile profile;  // of every rank, with instructions
  Limits limits;                 // while all ranks of a machine measure them at once: the mean over ranks
  std::string trace;             // for Perfetto, if asked for
};

// The states have their initial values and the samples are random: times do not depend on them. UserError for memory
// that does not suffice. All ranks call together.
ProfiledRun profile_run(const ProfileOptions& options, std::span<const std::unique_ptr<comm::World>> worlds);

}  // namespace kintsugi::train
