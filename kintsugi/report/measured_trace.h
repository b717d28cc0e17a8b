// The measured steps of a rank as a part of a trace for Perfetto; those of all ranks, joined, are the trace of a run.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "kintsugi/profile/measure.h"
#include "kintsugi/program/program.h"
#include "kintsugi/report/trace_writer.h"

namespace kintsugi::report {

// A step to be drawn. Times of the trace are those of `recorder` plus `offset`.
struct MeasuredStep {
  int64_t number = 0;  // of those that were measured
  const profile::Recorder& recorder;
  std::span<const profile::Started> started;
  std::span<const profile::Wait> waits;
  int64_t offset = 0;
};

// A process for the rank. Its thread "compute" has the calls, the instructions within them, and within a wait the part
// in which it waited for another rank; the threads of a channel have each transfer from its start to the end of the
// wait for it, and within it the part in which all members had begun. A flow goes from a send to where its receive
// proceeds, and through the members of a collective in the order in which they came.
class MeasuredTrace {
 public:
  MeasuredTrace(const program::Program& p, int rank);

  void add(const MeasuredStep& step);
  std::string take() { return out_.take(); }

 private:
  struct Lane {
    uint64_t track = 0;
    int64_t end = 0;
  };
  // A transfer of a step.
  struct Transfer {
    size_t started = 0, waited = 0;  // instructions, of all calls in order
    const program::Instruction* instruction = nullptr;
  };

  void add_calls(const MeasuredStep& step);
  void add_instruction(const MeasuredStep& step, size_t n, const program::Instruction& i);
  void add_transfer(const MeasuredStep& step, const Transfer& transfer);
  // A thread of the queue on which nothing else is from `begin` on.
  uint64_t track(const std::string& queue, int64_t begin, int64_t end);
  uint64_t new_thread(const std::string& name);

  const program::Program& p_;
  int rank_;
  TraceWriter out_;
  uint64_t process_, compute_;
  int num_threads_ = 0;
  std::vector<std::pair<std::string, std::vector<Lane>>> lanes_;  // by queue
};

}  // namespace kintsugi::report
