// Saves the states of a program to a checkpoint and loads them, in any layout and on any number of ranks. A weight is
// stored under its own name as its master copy, in the dtype of the master; moments and numbers of the run under their
// names. What is loaded may be of another program too (tensor_source.h).
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

// All ranks save together, each its share in a file of its own; each element is written once. `contents` is rank 0's.
// Returns the checkpoint's folder when it is complete and in its place, on every rank. If a rank fails there is no
// checkpoint, and every rank throws the same UserError: which rank, and why. The time limit of `all` then applies to
// the difference between the ranks' write times.
std::filesystem::path save_states(const run::Executor& executor, comm::Communicator& all,
                                  const std::filesystem::path& run_folder, int64_t step, const Contents& contents);
// Of a program for one rank.
std::filesystem::path save_states(const run::Executor& executor, const std::filesystem::path& run_folder, int64_t step,
                                  const Contents& contents);

// All that is saved, or the weights alone (other states keep their initial values).
enum class Load { everything, weights };
// Whether a weight of that name is left as it is. Empty: none.
using LeftOut = std::function<bool(std::string_view)>;
// All ranks load together, each reading what it holds; each piece that was not checked yet is checked by one of them.
// UserError, on every rank, naming a weight that is missing or has other dims, or a piece that is damaged.
void load_states(run::Executor& executor, comm::Communicator& all, const TensorSource& source, Load what,
                 const LeftOut& left_out = {});
// One rank alone: it checks each piece that it reads.
void load_states(run::Executor& executor, const TensorSource& source, Load what);

}  // namespace kintsugi::checkpoint
