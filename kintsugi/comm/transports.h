// The transports available to a run, as a list that is passed explicitly.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// Creates the worlds of this process for a run of `ranks` ranks: one per thread, or one.
using MakeWorlds = std::function<std::vector<std::unique_ptr<World>>(int ranks, const WorldOptions& options)>;

struct Transport {
  std::string_view name;  // in [parallel] transport
  bool launched = false;  // a launcher has started one process per rank
  MakeWorlds make;
};

// threads and mpi.
std::span<const Transport> transports();

// The transport of that name; "auto" selects the first that matches how this process was started (`launched`). Throws
// UserError if there is none.
const Transport& choose(std::span<const Transport> transports, std::string_view name, bool launched);

}  // namespace kintsugi::comm
