#include "kintsugi/train/decide.h"

#include <fmt/format.h>

#include <array>

#include "kintsugi/comm/timeout_message.h"

namespace kintsugi::train {

Decision decide(const Rank& rank, const Decision& wish, std::string_view when) {
  const std::array<int32_t, 5> mine = {static_cast<int32_t>(wish.stop), wish.save ? 1 : 0, wish.measure ? 1 : 0,
                                       wish.writes ? 1 : 0, wish.compare ? 1 : 0};
  std::array<int32_t, 5> all{};
  try {
    rank.all->wait(rank.all->all_reduce(std::as_bytes(std::span(mine)), std::as_writable_bytes(std::span(all)),
                                        tensor::DType::i32, comm::Reduction::max));
  } catch (const comm::Timeout& e) {
    comm::throw_timeout_of(rank.world.rank(), fmt::format("{}, whether to stop", when), e);
  }
  return {.stop = static_cast<Stop>(all[0]),
          .save = all[1] != 0,
          .measure = all[2] != 0,
          .writes = all[3] != 0,
          .compare = all[4] != 0};
}

bool signalled(const LoopOptions& options) {
  return options.stop && options.stop->load() != 0;
}

bool stops_here(const LoopOptions& options, int64_t step) {
  return options.stop_at > 0 && step >= options.stop_at;
}

}  // namespace kintsugi::train
