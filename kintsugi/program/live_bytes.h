// What is live in the arena at each instant of a list of calls.
#pragma once

#include <cstdint>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Live bytes of the arena at one instant. A value is live from the first to the last instruction that touches it for a
// micro-batch, or for the step; an input is live from the first call that reads it.
//   workspace      scratch memory of a kernel
//   communication  a value from the start of a collective, message or copy on it to the wait for it; values that only
//                  communication reads, always; values that only communication writes, until the end of the call that
//                  waited for them
//   gradients      an accumulator of a step with one micro-batch, while it is not communicated
//   activations    every other value
struct LiveBytes {
  int64_t activations = 0;
  int64_t gradients = 0;
  int64_t communication = 0;
  int64_t workspace = 0;
  int64_t aligned = 0;  // their sum, each rounded up to the alignment

  int64_t sum() const { return activations + gradients + communication + workspace; }
};

// During an instruction of a call.
struct Instant {
  size_t call = 0;
  size_t instruction = 0;
  LiveBytes live = {};
};

// The instants of a list in order: every instruction of every call if there are at most `most`, else the peak
// instruction of each call, and with more than `most` calls, of each group of adjacent calls.
std::vector<Instant> memory_over(const Program& p, const CallList& list, size_t most);

}  // namespace kintsugi::program
