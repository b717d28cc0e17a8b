// How a verb that may run on several ranks ends when one of them fails.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>

#include "app/command.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {

// For ranks that are processes: ends them together and does not return. Each prints only what it alone knows: an error
// known to all is printed by rank 0, and the reason why a rank ended by that rank. For threads it does nothing.
void end_all(std::span<const std::unique_ptr<comm::World>> worlds, const std::exception& error);

// Prints an error of a process that cannot communicate yet, and ends the process by a signal: then every launcher ends
// the other processes, which may be waiting for this one. Rank 0 prints the error; if rank 0 has none, the rank that
// has it prints it after a short delay.
void end_before_ranks_meet(const train::Launched& launched, const std::exception& error);

// For a verb that knows no ranks: ends a process that a launcher started as one of several, as above.
void require_one_process(const std::string& verb);

// The first that ranks that are processes do together, in every verb: SharedError unless `command` is the same on all.
void require_same_start(std::span<const std::unique_ptr<comm::World>> worlds, const std::string& verb,
                        const std::string& command);

// Runs f(), for code that runs before ranks that are processes can communicate.
template <typename F>
auto before_ranks_meet(F&& f) {
  const auto launched = train::launched();
  if (!launched || launched->ranks == 1) return f();
  try {
    return f();
  } catch (const std::exception& e) {
    end_before_ranks_meet(*launched, e);
    throw;
  }
}

}  // namespace kintsugi::app
