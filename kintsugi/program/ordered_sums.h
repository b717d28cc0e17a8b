// Where a device receives what it adds in the order of ranks, if a library moves it there (comm/nccl): a place for each
// group that reduces, behind the arena. A group adds one thing at a time.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct OrderedSums {
  struct Place {
    std::vector<mesh::Factor> group;
    int64_t offset = 0;  // from the beginning of all
    int64_t bytes = 0;
  };
  std::vector<Place> places;
  int64_t bytes = 0;

  const Place* find(const std::vector<mesh::Factor>& group) const;  // null: it reduces nothing
};

OrderedSums ordered_sums(const Program& p);

}  // namespace kintsugi::program
