// How a verb that may run on several ranks ends when one of them cannot go on.
#pragma once

#include <exception>
#include <memory>
#include <span>

#include "app/command.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/train/worlds.h"

namespace kintsugi::app {

// Ranks that are processes end together, and each says what it alone knows: what all of them know is for rank 0 to say,
// and why another has ended, for that one. Does not return then; of threads it does nothing.
void end_all(std::span<const std::unique_ptr<comm::World>> worlds, const std::exception& error);

// Says an error of a process that cannot talk to the others yet, and ends it by a signal: that is when every launcher
// ends the others, who may be waiting for this one. Rank 0 says what is wrong, and where nothing is wrong there, who
// finds it, a little later.
void end_before_ranks_meet(const train::Launched& launched, const std::exception& error);

// f(), which is run before ranks that are processes can talk.
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
