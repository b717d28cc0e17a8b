// What a list of calls sends, how often and why: the cost of a plan.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Equal collectives: in the same body or in others, and in every layer ("layer*" stands for each). Bytes are those
// that each rank sends.
struct Traffic {
  std::string value;  // its input; pieces that were stacked for it have the name of the value
  Collective kind = Collective::all_reduce;
  std::string axes;
  Phase phase = Phase::forward;
  std::string reason;
  double bytes = 0;   // of one call
  int64_t calls = 0;  // of the list: over all bodies and micro-batches

  double total() const { return bytes * static_cast<double>(calls); }
};

// Those that send most come first; ties in the order of the program.
std::vector<Traffic> traffic(const Program& p, Step step);

// The table of a training step, with its sum.
std::string print_communication(const Program& p);

// By list, kind and axes: how often, and how many bytes each rank sends. "" if nothing is sent.
std::string print_traffic_totals(const Program& p);

}  // namespace kintsugi::program
