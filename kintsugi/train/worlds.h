// The ranks of a run: threads of this process, or processes that MPI has started.
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

// The cores that all ranks may use together: `usable` are those of this process.
int64_t cores_of_all(int64_t usable, int64_t of_machine);

// Of the transport that [parallel] names: the worlds in this process, one for each thread, or one.
std::vector<std::unique_ptr<comm::World>> make_worlds(const config::Settings& settings,
                                                      std::span<const comm::Transport> transports = comm::transports());
// SharedError "[where] ..." if the number of started ranks is not the number that the plan needs.
void require_ranks(const comm::World& world, const config::Settings& settings, std::string_view where = "train");
// Rejects [train] reproducible if sums have no fixed order.
void require_order(const comm::World& world, const config::Settings& settings);

// This machine as the ranks of a run share it: with as many processes as the launcher says, else in this one; and the
// device that they compute on, if there is one.
compile::Machine machine_of(const config::Settings& settings, device::Device* device = nullptr);

}  // namespace kintsugi::train
