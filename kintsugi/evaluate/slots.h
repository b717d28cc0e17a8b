// Continuous batching: texts generated concurrently, each in a slot of the caches, that begin and end independently at
// any pass. A pass takes the next token of every text in generation, and parts of prompts in the remaining rows.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "kintsugi/comm/communicator.h"
#include "kintsugi/evaluate/draw.h"
#include "kintsugi/evaluate/token_score.h"
#include "kintsugi/run/executor.h"

namespace kintsugi::evaluate {

struct SlotText {
  std::vector<int32_t> prompt;  // nonempty
  SampleOptions sample = {};
  uint64_t stream = 0;        // of its random numbers
  int64_t top = -1;           // log-probabilities with this many alternatives; -1: none
  bool score_prompt = false;  // also for the tokens of the prompt
  size_t score_from = 1;      // with score_prompt: index of the first scored token, at least 1
  bool draws = true;          // false: only reads the prompt, without its last token; end it after the last score
};

class Slots {
 public:
  // Runs the lists of a program from models::build_serving. Construct and call collectively on all ranks with equal
  // arguments; `all` null: one rank. Both must outlive it.
  explicit Slots(run::Executor& executor, comm::Communicator* all = nullptr);

  int64_t size() const { return static_cast<int64_t>(slots_.size()); }
  int64_t capacity() const { return capacity_; }  // positions per slot
  int64_t num_active() const;
  bool active(int64_t slot) const { return at(slot).active; }

  // The free slot in which this prompt has the least left to read: the one that caches its longest prefix; among
  // several, the least recently used. Nothing if all are in use.
  std::optional<int64_t> free_slot(std::span<const int32_t> prompt) const;
  // The same among the given slots, at least one.
  int64_t best_of(std::span<const int64_t> slots, std::span<const int32_t> prompt) const;
  // Begins a text in a free slot. Reuses the cached prefix of the prompt before its scored tokens.
  void begin(int64_t slot, SlotText text);
  void end(int64_t slot);

  // A token found by a pass, per slot in this order: scores of the prompt's tokens from the second on, if requested,
  // then each sampled token.
  struct Found {
    int64_t slot = 0;
    bool of_prompt = false;
    TokenScore token;  // id kNotFinite: the logits are NaN or infinity; end the text
  };
  // Runs one pass over all active slots, at least one. When the caches of a text are full, rereads its last half as if
  // it were the prompt.
  std::vector<Found> step();

  // Throws UserError for a text whose logits are NaN or infinity. Call on all ranks.
  [[noreturn]] void fail_not_finite(int64_t slot) const;

  int64_t tokens_reused() const { return reused_; }  // prompt tokens found in slots

 private:
  struct Slot {
    bool active = false;
    SlotText text;
    std::vector<int32_t> ids;     // the prompt and the sampled ids
    std::vector<int32_t> cached;  // the tokens in its caches, from position 0
    size_t first = 0;             // cached[0] is ids[first]
    uint64_t order = 0;           // of the last begin() or end()

    size_t pending() const { return ids.size() - first - cached.size(); }
    bool scores(size_t id) const { return text.score_prompt && id >= text.score_from && id < text.prompt.size(); }
  };
  // A list and the rows of its batch.
  struct RowsOfList {
    program::Step step = program::Step::decode;
    size_t rows = 0;
  };
  // Consecutive tokens of a slot within a pass.
  struct Part {
    int64_t slot = 0;
    size_t row = 0, count = 0;  // rows of the batch
    size_t from = 0;            // index of the first token in ids
    bool draws = false;
  };

  const Slot& at(int64_t slot) const;
  std::vector<Part> choose_parts();
  void run(program::Step step, size_t rows, std::span<const Part> parts);
  static std::vector<float> logits_row(const tensor::View& out, size_t row);
  std::vector<Found> find_tokens(program::Step step, std::span<const Part> parts);

  run::Executor& executor_;
  comm::Communicator* all_;
  int from_ = 0;  // the first rank with the logits
  int64_t capacity_ = 0;
  size_t chunk_ = 0;               // rows of the lists prefill and score
  std::vector<RowsOfList> lists_;  // by rows, without score
  uint64_t order_ = 0;
  int64_t reused_ = 0;
  std::vector<Slot> slots_;
  std::vector<int32_t> tokens_, text_, at_, rows_;
};

// Continues the prompts (nonempty, identical on all ranks) in order in the slots, which must all be free: a text begins
// as soon as a slot is free. Calls next(text, id) with each sampled id on every rank; a text ends where any rank
// returns false. Text i samples from stream i.
void continue_in_slots(Slots& slots, comm::Communicator* all, std::span<const std::vector<int32_t>> prompts,
                       const SampleOptions& options, const std::function<bool(size_t text, int32_t id)>& next);

}  // namespace kintsugi::evaluate
