// The model's side of the server: all ranks make the texts of a queue, one after the other.
#pragma once

#include <functional>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/run/executor.h"
#include "kintsugi/serve/job.h"

namespace kintsugi::serve {

// Scores a token by the logits [vocab] before it, with the `top` most likely ones. In double precision.
TokenScore score_token(std::span<const float> logits, int32_t id, int64_t top);

// Runs the lists prefill, score and decode of a program of models::build_serving.
class Engine {
 public:
  // Both must outlive it. All ranks construct theirs together.
  Engine(run::Executor& executor, comm::Communicator& all);

  // Makes the texts of the queue until it is closed and empty. All ranks call it together; rank 0 gives the queue, the
  // others null.
  void run(JobQueue* queue);

  int64_t capacity() const { return capacity_; }  // tokens of a text, its prompt included

 private:
  struct Command;

  void make(const Generation& g, Job* job);
  void read_prompt(const Generation& g, Job* job);
  void run_list(program::Step step, std::span<const int32_t> ids, int64_t position, int64_t columns);
  std::span<const float> logits_row(int64_t row);
  std::vector<TokenScore> shared_scores(std::span<const int32_t> ids, std::span<const int64_t> rows, int64_t top);
  int64_t of_rank_0(int64_t value);

  run::Executor& executor_;
  comm::Communicator& all_;
  int from_ = 0;  // the first rank that has the logits
  int64_t capacity_ = 0, chunk_ = 0;
  program::Step step_ = program::Step::prefill;  // the last
  std::vector<int32_t> tokens_;
  std::vector<float> row_;
};

}  // namespace kintsugi::serve
