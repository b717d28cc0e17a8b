// Texts that must be the same on every rank.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// All ranks of a world as one group.
std::unique_ptr<Communicator> group_of_all(World& world);

// The text of rank 0, on every rank.
std::string text_of_rank_0(Communicator& all, const std::string& mine);

// Compares a text that must be the same on every rank (configuration, binary, program). If it is not, SharedError
// `[where] rank 1 has another WHAT than rank 0: ...`, naming the first rank that differs from rank 0, and the first
// line that differs.
void require_same(Communicator& all, std::string_view where, const std::string& what, const std::string& mine);

}  // namespace kintsugi::comm
