// The transports that a run may use, as a list that is passed explicitly.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// The worlds in this process, for `ranks` ranks in all: one for each thread, or one.
using MakeWorlds = std::function<std::vector<std::unique_ptr<World>>(int ranks, const WorldOptions& options)>;

struct Transport {
  std::string_view name;  // in [parallel] transport
  bool launched = false;  // a launcher has started a process for each rank
  MakeWorlds make;
};

// threads and mpi.
std::span<const Transport> transports();

// The one that a user names; "auto": the first that matches how this process was started, by a launcher or not.
// UserError if there is none.
const Transport& choose(std::span<const Transport> transports, std::string_view name, bool launched);

}  // namespace kintsugi::comm
