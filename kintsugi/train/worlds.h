// The ranks of a run: threads of this process, or processes that MPI has started.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/config/settings.h"

namespace kintsugi::train {

// What a launcher (mpirun, srun) says of this process in its environment.
struct Launched {
  int rank = 0;
  int ranks = 1;  // all processes
  int local = 1;  // those on this machine
};
std::optional<Launched> launched();

// The cores that all ranks may use together: `usable` are those of this process.
int64_t cores_of_all(int64_t usable, int64_t of_machine);

// [parallel] transport: the worlds that live in this process, one for each thread, or one.
std::vector<std::unique_ptr<comm::World>> make_worlds(const config::Settings& settings);
// SharedError where other than as many ranks as the plan needs were started.
void require_ranks(const comm::World& world, const config::Settings& settings);

// Compares a text that must be the same on every rank (configuration, binary, program). SharedError where it is not,
// naming the first rank that differs from rank 0, and the first of its lines that does.
void require_same(comm::Communicator& all, const std::string& what, const std::string& mine);

// The text of rank 0, on every rank.
std::string text_of_leader(comm::Communicator& all, const std::string& mine);

}  // namespace kintsugi::train
