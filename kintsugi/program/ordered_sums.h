// Device memory that receives the terms of reductions in rank order if a library moves them (comm/nccl): one region per
// reducing group, after the arena. A group reduces one value at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct OrderedSums {
  struct Place {
    std::vector<mesh::Factor> group;
    int64_t offset = 0;  // from the beginning of the memory
    int64_t bytes = 0;
  };
  std::vector<Place> places;
  int64_t bytes = 0;

  const Place* find(const std::vector<mesh::Factor>& group) const;  // null: it reduces nothing
};

OrderedSums ordered_sums(const Program& p);

}  // namespace kintsugi::program
