// The engine of the server: all ranks generate the texts of a queue, as many concurrently as there are slots.
#pragma once

#include <memory>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/evaluate/slots.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/serve/job.h"

namespace kintsugi::serve {

class Engine {
 public:
  // Of a program from models::build_serving. Both must outlive it. Construct collectively on all ranks.
  Engine(run::Executor& executor, comm::Communicator& all);

  // Generates the texts of the queue until it is closed and empty. Call collectively on all ranks; rank 0 passes the
  // queue, the others null.
  void run(JobQueue* queue);

  int64_t capacity() const { return slots_.capacity(); }  // tokens per text, including its prompt
  int64_t num_slots() const { return slots_.size(); }

 private:
  struct Command;
  struct Running {
    std::shared_ptr<Job> job;  // null: the slot is free, or on a rank other than 0
    std::vector<TokenScore> prompt;
    bool prompt_read = false, ended = false;
  };

  Command next_command(JobQueue& queue);
  void share(Command& command);
  void apply(const Command& command);
  void deliver(evaluate::Slots::Found found);
  void end_jobs();

  comm::Communicator& all_;
  evaluate::Slots slots_;
  std::vector<Running> running_;  // by slot
};

}  // namespace kintsugi::serve
