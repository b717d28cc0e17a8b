#include "kintsugi/lower/order/place_waits.h"

#include <algorithm>
#include <map>

#include "kintsugi/base/error.h"
#include "kintsugi/program/order_walk.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::lower {

using program::Instruction;
using program::Kind;
using program::Position;
using program::Touch;

namespace {

class WaitPlacer {
 public:
  WaitPlacer(const program::Program& p, program::CallList& list, const program::Touches& touches,
             const program::Queues& queues)
      : p_(p), list_(list), touches_(touches), queues_(queues) {
    list_.order.waits.clear();
    list_.order.unordered.clear();
  }

  void run() {
    auto input = list_.order.inputs.begin();
    for (const auto& [number, call, body] : program::walk(p_, list_)) {
      const auto c = static_cast<int>(number);
      const bool copies = input != list_.order.inputs.end() && input->call == number;
      if (copies) place(pending_.begin(), {c, program::kBeforeInputs});
      for (; input != list_.order.inputs.end() && input->call == number; ++input)
        stream_.add(touches_.of(input->buffer, true, list_, call));
      Position first = {c, 0};  // of the launch that contains the instruction
      for (size_t at = 0; at < body.instructions.size(); ++at) {
        const Position here = {c, static_cast<int>(at)};
        if (body.instructions[at].launch != 0) first = here;
        visit(body.instructions[at], call, here, first);
      }
    }
    place(pending_.begin(), {static_cast<int>(list_.calls.size()), program::kBeforeInputs});
  }

 private:
  struct Transfer {
    int64_t number = 0;  // in start order
    int queue = 0;
    std::vector<Touch> touches;
  };
  struct Pending {
    Position wait;
    const Transfer* of;
  };

  void visit(const Instruction& i, const program::Call& call, Position here, Position launch) {
    if (i.kind == Kind::wait) {
      const auto started = transfers_.find(program::key_of(i, call));
      base::require(started != transfers_.end(), "lower", "a wait for event {}, which the list does not start",
                    i.event);
      pending_.push_back({here, &started->second});
      return;
    }
    std::vector<Touch>& own = touched_;
    touches_.get(static_cast<size_t>(here.instruction), list_, call, own);
    const int queue = queues_.of[static_cast<size_t>(call.body)][static_cast<size_t>(here.instruction)];
    const auto later = [&](const Pending& w) {
      return (i.kind != Kind::compute && w.of->queue == queue) || !program::conflict(own, w.of->touches);
    };
    place(std::stable_partition(pending_.begin(), pending_.end(), later), launch);
    if (i.kind == Kind::compute) {
      stream_.add(own);
      return;
    }
    if (i.kind == Kind::collective && !stream_.must_wait(queue, own)) list_.order.unordered.push_back(here);
    transfers_[program::key_of(i, call)] = {started_++, queue, own};
  }

  // Newest first: once the stream has waited for it, its queue has completed what was before.
  void place(std::vector<Pending>::iterator first, Position before) {
    const auto newer = [](const Pending& a, const Pending& b) { return a.of->number > b.of->number; };
    std::sort(first, pending_.end(), newer);
    for (auto w = first; w != pending_.end(); ++w) {
      list_.order.waits.push_back({w->wait, before});
      stream_.add(w->of->touches);
    }
    pending_.erase(first, pending_.end());
  }

  const program::Program& p_;
  program::CallList& list_;
  const program::Touches& touches_;
  const program::Queues& queues_;
  std::map<program::EventKey, Transfer> transfers_;
  std::vector<Pending> pending_;
  std::vector<Touch> touched_;  // by the instruction being visited
  program::StreamTouches stream_;
  int64_t started_ = 0;
};

}  // namespace

void place_waits(program::Program& p) {
  if (!p.on_device) return;
  const program::Touches touches(p);
  const program::Queues queues = program::queues_of(p);
  for (program::CallList& list : p.lists) {
    if (p.exchange == program::Exchange::in_streams)
      WaitPlacer(p, list, touches, queues).run();
    else
      list.order.waits = program::in_place(p, list).waits;
  }
}

}  // namespace kintsugi::lower
