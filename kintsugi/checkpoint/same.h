// Texts that are the same on every rank, and what is wrong where they are not.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::checkpoint {

// All ranks of a world as one group.
std::unique_ptr<comm::Communicator> everyone(comm::World& world);

// The text of rank 0, on every rank.
std::string text_of_leader(comm::Communicator& all, const std::string& mine);

// Compares a text that must be the same on every rank (configuration, binary, program). SharedError `[where] rank 1 has
// another WHAT than rank 0: ...` where it is not, naming the first rank that differs from rank 0, and the first of its
// lines that does.
void require_same(comm::Communicator& all, std::string_view where, const std::string& what, const std::string& mine);

}  // namespace kintsugi::checkpoint
