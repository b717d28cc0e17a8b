// How a verb on several ranks ends when one of them fails.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string>

#include "app/command.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/launch/process.h"

namespace kintsugi::app {

// For ranks as processes: ends them together and does not return. Each prints only what it alone knows: rank 0 prints
// an error known to all, and the failing rank the reason why it ended. For threads it does nothing.
void end_all(std::span<const std::unique_ptr<comm::World>> worlds, const std::exception& error);

// For an error of a process that cannot communicate yet. Under a launcher, prints the error and ends the process by a
// signal: then every launcher ends the other processes, which may be waiting for this one. Rank 0 prints the error; if
// rank 0 has none, the rank that has it prints it after a short delay. Rank 0 alone prints an error that all processes
// have. Returns if the launcher cannot be reached, as where only its variables are left in the environment.
void end_before_ranks_meet(const launch::Process& process, const std::exception& error);

// For a verb that runs in one process: UserError if a launcher started several, after a delay on all but rank 0.
void require_one_process(const std::string& verb);

// The first operation of ranks as processes, in every verb: SharedError unless `command` is equal on all.
void require_same_start(std::span<const std::unique_ptr<comm::World>> worlds, const std::string& verb,
                        const std::string& command);

// Runs f(), for code that runs before ranks as processes can communicate.
template <typename F>
auto before_ranks_meet(F&& f) {
  const launch::Process& process = launch::this_process();
  if (process.size == 1) return f();
  try {
    return f();
  } catch (const std::exception& e) {
    end_before_ranks_meet(process, e);
    throw;
  }
}

}  // namespace kintsugi::app
