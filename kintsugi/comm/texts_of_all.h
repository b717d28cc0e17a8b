// Texts that ranks exchange; each may have another length.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// By rank, on every rank.
std::vector<std::string> texts_of_all(Communicator& all, const std::string& mine);

// By rank, on rank 0; none on the others.
std::vector<std::string> texts_on_rank_0(Communicator& all, const std::string& mine);

}  // namespace kintsugi::comm
