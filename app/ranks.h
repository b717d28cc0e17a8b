// How a verb that may run on several ranks ends when one of them fails.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>

#include "app/command.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::app {

// For ranks that are processes: ends them together and does not return. Each prints only what it alone knows: an error
// known to all is printed by rank 0, and the reason why a rank ended by that rank. For threads it does nothing.
void end_all(std::span<const std::unique_ptr<comm::World>> worlds, const std::exception& error);

// Prints an error of a process that cannot communicate yet, and ends the process by a signal: then every launcher ends
// the other processes, which may be waiting for this one. Rank 0 prints the error; if rank 0 has none, the rank that
// has it prints it after a short delay. An error that all processes have is printed by rank 0 alone.
void end_before_ranks_meet(int rank, const std::exception& error);

// For a verb that runs in one process: UserError if a launcher started several, after a delay on all but rank 0.
void require_one_process(const std::string& verb);

// The first that ranks that are processes do together, in every verb: SharedError unless `command` is the same on all.
void require_same_start(std::span<const std::unique_ptr<comm::World>> worlds, const std::string& verb,
                        const std::string& command);

// Runs f(), for code that runs before ranks that are processes can communicate.
template <typename F>
auto before_ranks_meet(F&& f) {
  const launch::Process& process = launch::this_process();
  if (process.size == 1) return f();
  try {
    return f();
  } catch (const std::exception& e) {
    end_before_ranks_meet(process.rank, e);
    throw;
  }
}

}  // namespace kintsugi::app
