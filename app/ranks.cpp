#include "app/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "app/standard_streams.h"
#include "kintsugi/base/error.h"
#include "kintsugi/comm/agree.h"
#include "kintsugi/comm/same_on_all.h"

namespace kintsugi::app {
namespace {

// Lets rank 0 print the error that reaches it last, and end all processes itself; and, before ranks meet, an equal
// error of its own.
constexpr std::chrono::seconds kForRank0{5}, kForRank0ToStart{2};

}  // namespace

void end_all(std::span<const std::unique_ptr<comm::World>> worlds, const std::exception& error) {
  if (worlds[0]->backend().ranks != comm::RankKind::process) return;
  const int rank = worlds[0]->rank();
  const std::string text = describe(error).text;
  const auto* timeout = dynamic_cast<const comm::Timeout*>(&error);
  const bool another_ended = timeout && timeout->missing.empty() && text.find(" ended: ") != std::string::npos;
  if (rank > 0 && dynamic_cast<const comm::SharedError*>(&error) != nullptr) {
    worlds[0]->leave_to_others();
    std::this_thread::sleep_for(kForRank0);  // usually it ends this process
  }
  if (!another_ended) {
    const bool named = rank == 0 || text.starts_with(fmt::format("[comm] rank {}: ", rank));
    write_err("error: {}{}\n", named ? "" : fmt::format("rank {}: ", rank), text);
  }
  worlds[0]->abort(error.what());
}

void end_before_ranks_meet(const launch::Process& process, const std::exception& error) {
  if (!process.attached) return;
  const int rank = process.rank;
  if (rank > 0) std::this_thread::sleep_for(kForRank0ToStart);
  if (rank == 0 || dynamic_cast<const comm::SharedError*>(&error) == nullptr)
    write_err("error: {}{}\n", rank == 0 ? "" : fmt::format("rank {}: ", rank), describe(error).text);
  std::fflush(nullptr);
  std::signal(SIGTERM, SIG_DFL);
  std::raise(SIGTERM);
}

void require_one_process(const std::string& verb) {
  const launch::Process& process = launch::this_process();
  if (process.size == 1) return;
  const base::UserError error(
      verb, "this verb runs in one process, but {} were started; start it without mpirun or srun", process.size);
  end_before_ranks_meet(process, error);  // others may wait within MPI
  throw error;
}

void require_same_start(std::span<const std::unique_ptr<comm::World>> worlds, const std::string& verb,
                        const std::string& command) {
  if (worlds[0]->backend().ranks != comm::RankKind::process || worlds[0]->size() == 1) return;
  comm::require_same(*comm::group_of_all(*worlds[0]), verb, "command", command);
}

}  // namespace kintsugi::app
