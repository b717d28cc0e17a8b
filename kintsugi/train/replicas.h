// Replicas: states that several ranks hold with equal values. They are initialized equally without communication, as
// functions of seed and name; this checks or enforces it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::train {

// Compares the bytes of every weight and optimizer state among the ranks that replicate it, by checksum. Collective;
// throws UserError that names the first state that differs and where.
void check_replicas(const run::Executor& executor, comm::World& world);

// Compares them during a run. Which replica is wrong follows from a majority, if there are at least three.
class ReplicaChecks {
 public:
  // Collective. `hosts`: of the ranks of the world; `all`: their communicator.
  ReplicaChecks(const run::Executor& executor, comm::World& world, comm::Communicator& all);
  ~ReplicaChecks();

  // Collective, when no step is in progress. Throws SharedError "[train] ... after step 40: "x" is not the same on rank
  // 2 (n3) as on ranks 0 1 3, ...".
  void compare(int64_t step);

 private:
  struct Group;

  const run::Executor& executor_;
  comm::World& world_;
  comm::Communicator& all_;
  std::vector<std::string> hosts_;
  std::vector<Group> groups_;
};

// The message of a difference: the ranks that hold a state, their hosts and checksums.
std::string in_words(const std::string& state, const std::vector<int>& ranks, const std::vector<std::string>& hosts,
                     const std::vector<uint64_t>& sums);

// Copies the bytes of the first replica to all others.
void broadcast_replicas(run::Executor& executor, comm::World& world);

}  // namespace kintsugi::train
