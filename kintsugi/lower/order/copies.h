// Copies between the arena and the file, and the waits for them, to be inserted between the instructions of a body.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::lower {

// The first event number that no instruction uses.
int first_free_event(const program::Program& p);

// A new root buffer like the given one, in a region.
program::BufferId add_like(program::Program& p, program::BufferId like, program::Region region,
                           const std::string& suffix, int64_t copies = 0);

// A view of a buffer from element `first`, with that many elements of its dtype.
program::BufferId add_part(program::Program& p, program::BufferId of, int64_t first, int64_t elements);

class Copies {
 public:
  Copies(program::Program& p, int& events) : p_(p), events_(events) {}

  // Instructions to insert before instruction `at` of the current body; `like` gives layer and phase. At one position
  // stores start first, then come waits for stores, then fetches start, then come waits for fetches.
  int fetch(size_t at, program::BufferId from, program::BufferId to, const program::Instruction& like);
  int store(size_t at, program::BufferId from, program::BufferId to, const program::Instruction& like);
  void wait(size_t at, int copy);  // `copy`: returned by fetch or store

  void put_into(program::Body& body);

 private:
  struct Entry {
    size_t at = 0;
    int order = 0;
    program::Instruction instruction;
  };
  int start(size_t at, program::Copy copy, program::BufferId from, program::BufferId to,
            const program::Instruction& like);

  program::Program& p_;
  int& events_;
  std::vector<Entry> entries_;
  std::vector<program::Instruction> started_;  // by number
};

}  // namespace kintsugi::lower
