// The ranks of a run: threads of this process, or processes started by MPI.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/comm/transports.h"
#include "kintsugi/compile/fit.h"
#include "kintsugi/config/settings.h"
#include "kintsugi/device/device.h"

namespace kintsugi::train {

// The cores usable by all ranks together; `usable`: by this process.
int64_t cores_of_all(int64_t usable, int64_t of_machine);

// The worlds in this process for the transport in [parallel]: one per thread, or one.
std::vector<std::unique_ptr<comm::World>> make_worlds(const config::Settings& settings,
                                                      std::span<const comm::Transport> transports = comm::transports());
// Throws SharedError "[where] ..." if the number of started ranks differs from what the plan needs.
void require_ranks(const comm::World& world, const config::Settings& settings, std::string_view where = "train");
// Rejects [train] reproducible if sums have no fixed order.
void require_order(const comm::World& world, const config::Settings& settings);

// This machine as shared by the ranks of a run: with as many processes as the launcher reports, else with this one; and
// their device, if any.
compile::Machine machine_of(const config::Settings& settings, device::Device* device = nullptr);

}  // namespace kintsugi::train
