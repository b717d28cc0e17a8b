// What ranks do together on one file system: all of it, or one error that all of them have.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// An error that all ranks have, with one text: one of them says it.
class SharedError : public base::UserError {
  using base::UserError::UserError;
};

// Calls f on this rank, and returns when it has ended on all: with nothing, or with what the first rank that failed
// said, "[where] rank 2: what"; without the rank where all of them said the same. The text is the same on every rank.
std::optional<std::string> failure_of(comm::Communicator& all, const std::function<void()>& f);

// The same, and throws the failure as a SharedError.
void together(comm::Communicator& all, const std::function<void()>& f);

// What rank 0 gave.
int64_t of_rank_0(comm::Communicator& all, int64_t value);

}  // namespace kintsugi::checkpoint
