// The measured steps of a rank as part of a Perfetto trace; the parts of all ranks concatenate to the trace of a run.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "kintsugi/profile/measure.h"
#include "kintsugi/program/queue.h"
#include "kintsugi/report/trace_writer.h"

namespace kintsugi::report {

// A step to draw, at its `times` plus `offset`.
struct MeasuredStep {
  int64_t number = 0;  // index among the measured steps
  const profile::StepTimes& times;
  std::span<const profile::Started> started;
  std::span<const profile::Wait> waits;
  int64_t offset = 0;
};

// A process per rank. Its thread "compute" contains the calls, their instructions and, within a wait, the part spent
// waiting for another rank. Each transfer queue is a thread: a transfer lasts from when its last member arrived and its
// predecessors were done to the end of the wait for it. A flow leads from the start of a send to where its receive
// proceeds, and through the members of a collective in the order in which they started it.
class MeasuredTrace {
 public:
  MeasuredTrace(const program::Program& p, int rank);

  void add(const MeasuredStep& step);
  std::string take() { return out_.take(); }

 private:
  // A transfer of a step.
  struct Transfer {
    size_t started = 0, waited = 0;  // instruction indices over all calls in order
    const program::Instruction* instruction = nullptr;
    uint64_t thread = 0;
    int64_t begin = 0, end = 0;  // in its queue
  };

  void add_calls(const MeasuredStep& step);
  void add_instruction(const MeasuredStep& step, size_t n, const program::Instruction& i);
  void add_transfers(const MeasuredStep& step);
  void add_transfer(const MeasuredStep& step, const Transfer& transfer);
  uint64_t thread_of(const program::Queue& queue);
  uint64_t new_thread(const std::string& name);

  const program::Program& p_;
  int rank_;
  TraceWriter out_;
  uint64_t process_, compute_;
  int num_threads_ = 0;
  std::map<program::Queue, uint64_t> threads_;  // of transfer queues
};

}  // namespace kintsugi::report
