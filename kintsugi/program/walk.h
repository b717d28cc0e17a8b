// Iteration over a list of calls: each call with its body, and facts that follow from the order of calls alone.
#pragma once

#include <compare>
#include <cstdint>
#include <set>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

struct VisitedCall {
  size_t position = 0;  // index in the list
  const Call& call;
  const Body& body;
};

// A range of VisitedCall, in list order: for (const auto& [position, call, body] : walk(p, list)).
class Walk {
 public:
  class Iterator {
   public:
    Iterator(const Program& p, const CallList& list, size_t position) : p_(&p), list_(&list), position_(position) {}

    VisitedCall operator*() const {
      const Call& call = list_->calls[position_];
      return {position_, call, p_->bodies[static_cast<size_t>(call.body)]};
    }
    Iterator& operator++() {
      ++position_;
      return *this;
    }
    bool operator==(const Iterator& other) const { return position_ == other.position_; }

   private:
    const Program* p_;
    const CallList* list_;
    size_t position_;
  };

  Walk(const Program& p, const CallList& list) : p_(&p), list_(&list) {}

  Iterator begin() const { return {*p_, *list_, 0}; }
  Iterator end() const { return {*p_, *list_, list_->calls.size()}; }
  VisitedCall operator[](size_t position) const { return *Iterator(*p_, *list_, position); }

 private:
  const Program* p_;
  const CallList* list_;
};

// Both must outlive the walk.
inline Walk walk(const Program& p, const CallList& list) {
  return {p, list};
}

// Calls f(call, at, instruction) for every instruction of every call, in order; `at` is its index in the body.
template <typename F>
void for_each_instruction(const Program& p, const CallList& list, F&& f) {
  for (const VisitedCall& call : walk(p, list))
    for (size_t at = 0; at < call.body.instructions.size(); ++at) f(call, at, call.body.instructions[at]);
}

size_t num_instructions(const Program& p, const CallList& list);  // over all calls

// The first call of each body that is called, in order.
std::vector<VisitedCall> first_calls(const Program& p, const CallList& list);
// [body]
std::vector<int64_t> num_calls(const Program& p, const CallList& list);

// The highest micro-batch of a call, 0 if all calls are of the whole step. The results of the list are those of this
// one.
int64_t last_micro_batch(const CallList& list);

// The key of the event that an instruction of a call starts or waits for: a wait has the key of its start.
struct EventKey {
  int event = -1;
  int64_t micro_batch = -1;

  auto operator<=>(const EventKey&) const = default;
};
inline EventKey key_of(const Instruction& i, const Call& call) {
  return {i.event, call.micro_batch};
}

// The events of collectives that one body starts and another awaits.
std::set<int> events_between_bodies(const Program& p);

// [call]: roots of the inputs that it is the first of its micro-batch to read; the run fills them before the call.
std::vector<std::vector<BufferId>> first_inputs(const Program& p, const CallList& list);

// [call]: whether the run fills inputs before it, or, for a micro-batch that reads none, is notified of its beginning.
std::vector<bool> fills(const Program& p, const CallList& list);

}  // namespace kintsugi::program
