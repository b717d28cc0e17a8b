// Operations that can fail on some ranks and not on others, such as reading files: all ranks go on, or all have the
// same error.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "kintsugi/base/error.h"
#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// An error that all ranks have, with the same text, so that one of them may print it for all.
class SharedError : public base::UserError {
  using base::UserError::UserError;
};

// Calls f on this rank, and returns when it has ended on all: nothing, or the error of the first rank that failed,
// "[where] rank 2: what"; without "rank 2: " if all ranks had the same one. The text is the same on every rank.
std::optional<std::string> failure_of(Communicator& all, const std::function<void()>& f);

// The same, and throws the failure as a SharedError.
void together(Communicator& all, const std::function<void()>& f);

// The value of rank 0, on every rank.
int64_t of_rank_0(Communicator& all, int64_t value);

// Whether it is so on any rank, on every rank.
bool on_any(Communicator& all, bool mine);

// SharedError "[comm] WHAT needs sums in the order of ranks, ..." unless the backend guarantees that order.
void require_rank_order(const World& world, std::string_view what);

}  // namespace kintsugi::comm
