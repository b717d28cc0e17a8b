#include "kintsugi/train/clock_offset.h"

#include <cstdlib>
#include <limits>
#include <span>

#include "kintsugi/profile/recorder.h"

namespace kintsugi::train {
namespace {

constexpr int kRounds = 16;

void send_time(comm::Communicator& all, int to) {
  const int64_t time = profile::now();
  all.wait(all.send(std::as_bytes(std::span(&time, 1)), to));
}

int64_t receive_time(comm::Communicator& all, int from) {
  int64_t time = 0;
  all.wait(all.receive(std::as_writable_bytes(std::span(&time, 1)), from));
  return time;
}

}  // namespace

ClockOffset clock_offset(comm::Communicator& all) {
  if (all.backend().ranks != comm::RankKind::process) return {};
  if (all.rank() == 0) {
    for (int rank = 1; rank < all.size(); ++rank)
      for (int round = 0; round < kRounds; ++round) {
        receive_time(all, rank);
        send_time(all, rank);
      }
    return {};
  }
  ClockOffset best = {.error = std::numeric_limits<int64_t>::max()};
  for (int round = 0; round < kRounds; ++round) {
    const int64_t asked = profile::now();
    send_time(all, 0);
    const int64_t told = receive_time(all, 0), answered = profile::now();
    const int64_t error = (answered - asked) / 2;
    if (error < best.error) best = {.offset = told - (asked + error), .error = error};
  }
  if (std::abs(best.offset) <= best.error) best.offset = 0;
  return best;
}

}  // namespace kintsugi::train
