// Saves the states of a program to a checkpoint and loads them, in any layout and on any number of ranks. A weight is
// stored under its own name as its master copy, in the dtype of the master; moments and scalars of the run under
// theirs. Weights of other programs can also be loaded (tensor_source.h).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

#include "kintsugi/checkpoint/tensor_source.h"
#include "kintsugi/checkpoint/writer.h"
#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::checkpoint {

// Collective: each rank saves its share in its own file, and each element is written once. `contents` is taken from
// rank 0. Returns the checkpoint's folder on every rank once it is complete and published. If a rank fails there is no
// checkpoint, and every rank throws the same UserError, naming the rank and the reason. The time limit of `all` then
// bounds the difference between the ranks' write times.
std::filesystem::path save_states(const run::Executor& executor, comm::Communicator& all,
                                  const std::filesystem::path& run_folder, int64_t step, const Contents& contents);
// For a program of one rank.
std::filesystem::path save_states(const run::Executor& executor, const std::filesystem::path& run_folder, int64_t step,
                                  const Contents& contents);

// Everything that is saved, or only the weights (other states keep their initial values).
enum class Load { everything, weights };
// Whether to skip the weight of that name. Empty: skip none.
using LeftOut = std::function<bool(std::string_view)>;
// Collective: each rank reads what it holds, and each piece that is not yet verified is verified by one rank. Throws
// UserError on every rank, naming a weight that is missing or has other dims, or a damaged piece.
void load_states(run::Executor& executor, comm::Communicator& all, const TensorSource& source, Load what,
                 const LeftOut& left_out = {});
// For a single rank, which verifies each piece that it reads.
void load_states(run::Executor& executor, const TensorSource& source, Load what);

}  // namespace kintsugi::checkpoint
