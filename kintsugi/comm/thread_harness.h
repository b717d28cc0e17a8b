// For tests: runs a function on every rank of a world of threads.
#pragma once

#include <exception>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "kintsugi/comm/communicator.h"

namespace kintsugi::comm {

// The result of f on each rank, or the text of its exception; a rank that throws aborts the world, as in a run.
inline std::vector<std::string> on_ranks(int ranks, const std::function<std::string(World&)>& f,
                                         const WorldOptions& options = {}) {
  auto worlds = thread_worlds(ranks, options);
  std::vector<std::string> said(ranks);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank) {
    threads.emplace_back([&, rank] {
      try {
        said[rank] = f(*worlds[rank]);
      } catch (const std::exception& error) {
        said[rank] = error.what();
        worlds[rank]->abort(said[rank]);
      }
    });
  }
  for (auto& thread : threads) thread.join();
  return said;
}

}  // namespace kintsugi::comm
