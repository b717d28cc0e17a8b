// Gathers texts of any length from the ranks.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// Indexed by rank, on every rank.
std::vector<std::string> texts_of_all(Communicator& all, const std::string& mine);

// Indexed by rank on rank 0; empty on the others.
std::vector<std::string> texts_on_rank_0(Communicator& all, const std::string& mine);

}  // namespace kintsugi::comm
