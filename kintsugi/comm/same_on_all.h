// Texts that must be identical on every rank.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// A group of all ranks of a world.
std::unique_ptr<Communicator> group_of_all(World& world);

// Broadcasts the text of rank 0.
std::string text_of_rank_0(Communicator& all, const std::string& mine);

// Compares a text that must be identical on every rank (configuration, binary, program). Throws SharedError `[where]
// rank 1 has another WHAT than rank 0: ...`, naming the first rank that differs from rank 0 and the first line that
// differs.
void require_same(Communicator& all, std::string_view where, const std::string& what, const std::string& mine);

}  // namespace kintsugi::comm
