#include "app/ranks.h"

#include <fmt/format.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <string>
#include <thread>

#include "kintsugi/comm/agree.h"

namespace kintsugi::app {
namespace {

// So that rank 0 can print the error that reaches it last, and end all processes itself.
constexpr std::chrono::seconds kForRank0{2};

}  // namespace

void end_all(std::span<const std::unique_ptr<comm::World>> worlds, const std::exception& error) {
  if (worlds[0]->backend().ranks != comm::RankKind::process) return;
  const int rank = worlds[0]->rank();
  const std::string text = describe(error).text;
  const auto* timeout = dynamic_cast<const comm::Timeout*>(&error);
  const bool another_ended = timeout && timeout->missing.empty() && text.find(" ended: ") != std::string::npos;
  const bool shared = dynamic_cast<const comm::SharedError*>(&error) != nullptr;
  if (!another_ended && (rank == 0 || !shared)) {
    const bool named = rank == 0 || text.starts_with(fmt::format("[comm] rank {}: ", rank));
    fmt::print(stderr, "error: {}{}\n", named ? "" : fmt::format("rank {}: ", rank), text);
  }
  if (rank > 0 && shared) std::this_thread::sleep_for(kForRank0);
  worlds[0]->abort(error.what());
}

void end_before_ranks_meet(const train::Launched& launched, const std::exception& error) {
  if (launched.rank > 0) std::this_thread::sleep_for(kForRank0);
  fmt::print(stderr, "error: {}{}\n", launched.rank == 0 ? "" : fmt::format("rank {}: ", launched.rank),
             describe(error).text);
  std::fflush(nullptr);
  std::raise(SIGTERM);
}

}  // namespace kintsugi::app
