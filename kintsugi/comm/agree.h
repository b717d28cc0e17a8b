// Agreement on operations that may fail on some ranks only, such as reading files: either all ranks continue, or all
// report the same error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// An error that every rank has, with the same text, so that one of them may print it for all.
class SharedError : public base::UserError {
  using base::UserError::UserError;
};

// Calls f on this rank and returns when it has finished on all ranks. Returns nothing on success, else the error of the
// lowest failing rank, "[where] rank 2: what"; without "rank 2: " if all ranks failed with the same error. The text is
// identical on every rank.
std::optional<std::string> failure_of(Communicator& all, const std::function<void()>& f);

// As failure_of(), but throws the failure as a SharedError.
void together(Communicator& all, const std::function<void()>& f);

// Broadcasts the value of rank 0.
int64_t of_rank_0(Communicator& all, int64_t value);

// Logical OR of `mine` over all ranks.
bool on_any(Communicator& all, bool mine);

// Throws SharedError "[comm] WHAT needs sums in the order of ranks, ..." unless the backend guarantees that order.
void require_rank_order(const World& world, std::string_view what);

}  // namespace kintsugi::comm
