// Device memory that receives the terms of reductions in rank order if a library moves them (comm/nccl): one region per
// channel that reduces, after the arena. A channel reduces one value at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/device_order.h"
#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct OrderedSums {
  struct Place {
    Channel channel;
    int64_t offset = 0;  // from the beginning of the memory
    int64_t bytes = 0;
  };
  std::vector<Place> places;
  int64_t bytes = 0;

  const Place* find(const Channel& channel) const;  // null: it reduces nothing
};

OrderedSums ordered_sums(const Program& p);

}  // namespace kintsugi::program
