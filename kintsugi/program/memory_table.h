// What the bytes of a program are for: its states, and the values of a list of calls at the instant that needs most.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// What lives in the arena at one instant, in bytes. A value lives from the first to the last instruction that touches
// it for a micro-batch, or for the step; an input from the beginning of the first call that reads it.
//   workspace      scratch memory of a kernel
//   communication  a value from the start of a collective, message or copy on it to the wait for it; one that only
//                  those read, made to be sent, always; one that only those write, received, until the end of the
//                  call that waited for it
//   activations    every other value
struct Live {
  int64_t activations = 0;
  int64_t communication = 0;
  int64_t workspace = 0;
  int64_t aligned = 0;  // their sum, each up to kAlignment

  int64_t sum() const { return activations + communication + workspace; }
};

// While an instruction of a call runs.
struct Moment {
  size_t call = 0;
  size_t instruction = 0;
  Live live = {};
};

// The instants of a list in their order: every instruction of every call where those are at most `most`, else of each
// call the instruction that needs most, and where calls are more than `most`, of as many neighbouring calls as it
// takes.
std::vector<Moment> memory_over(const Program& p, const CallList& list, size_t most);

// In bytes of a rank; total() is p.bytes().
struct MemoryTable {
  int64_t weights = 0, gradients = 0, optimizer = 0, statistics = 0, caches = 0;  // states; gradients: accumulators
  int64_t activations = 0, communication = 0, workspace = 0;                      // at the peak
  int64_t packing = 0;  // what alignment takes, and gaps between values
  int64_t others = 0;   // arena that only other lists of calls need
  Moment peak = {};

  int64_t total() const {
    return weights + gradients + optimizer + statistics + caches + activations + communication + workspace + packing +
           others;
  }
};

// By the list "train", or the one that needs most where there is none.
MemoryTable memory_table(const Program& p);
const CallList& largest_list(const Program& p);

// What a stage holds of the model: layers in ascending order, -1 is the embedding, and behind the last the head; and
// the elements of its weights over all ranks. What another stage holds too and saves is that one's.
struct Held {
  std::vector<int> layers;
  int64_t parameters = 0;
};
Held held(const Program& p);

}  // namespace kintsugi::program
