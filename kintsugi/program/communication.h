// What a list of calls communicates, how often and why: the communication cost of a plan.
#pragma once

#include <string>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

// Equal collectives, over all bodies and layers ("layer*" stands for each). Bytes are those that each rank sends.
struct Traffic {
  std::string value;  // its input; pieces stacked for it carry the value's name
  Collective kind = Collective::all_reduce;
  std::string axes;
  Phase phase = Phase::forward;
  std::string reason;
  double bytes = 0;   // per call
  int64_t calls = 0;  // in the list: over all bodies and micro-batches

  double total() const { return bytes * static_cast<double>(calls); }
};

// Sorted by total bytes, descending; ties in program order.
std::vector<Traffic> traffic(const Program& p, Step step);

// The table of a training step, with totals.
std::string print_communication(const Program& p);

// Counts and bytes sent per rank, by list, kind and axes; "" if nothing is sent.
std::string print_traffic_totals(const Program& p);

}  // namespace kintsugi::program
