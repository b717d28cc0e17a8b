#include "kintsugi/program/device_order.h"

#include <algorithm>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/program/order_walk.h"
#include "kintsugi/program/program.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {

DeviceOrder in_place(const Program& p, const CallList& list) {
  DeviceOrder order;
  order.inputs = list.order.inputs;
  for_each_instruction(p, list, [&](const VisitedCall& call, size_t at, const Instruction& i) {
    const Position here = {static_cast<int>(call.position), static_cast<int>(at)};
    if (i.kind == Kind::wait) order.waits.push_back({here, here});
  });
  return order;
}

std::map<Channel, OpenTransfers> open_transfers(const Program& p) {
  std::map<Channel, OpenTransfers> most;
  for (const CallList& list : p.lists) {
    std::map<Channel, size_t> open;
    for_each_instruction(p, list, [&](const VisitedCall&, size_t, const Instruction& i) {
      if (i.kind == Kind::compute || is_copy(i)) return;
      const Channel channel = {i.group, i.channel};
      OpenTransfers& of = most[channel];
      if (i.kind == Kind::wait) {
        --open[channel];
        return;
      }
      of.count = std::max(of.count, ++open[channel]);
      for (const std::vector<BufferId>& operands : {i.ins, i.outs})
        for (const BufferId id : operands) of.bytes = std::max(of.bytes, p.buffer(id).bytes());
    });
  }
  return most;
}

namespace {

class OrderVerifier {
 public:
  OrderVerifier(const Program& p, const CallList& list, const Touches& touches, const Queues& queues)
      : p_(p), list_(list), touches_(touches), queues_(queues) {}

  void run() {
    for (const auto& call : walk(p_, list_)) {
      call_ = call.position;
      wait_until({static_cast<int>(call_), kBeforeInputs});
      copy_inputs(call.call);
      for (size_t at = 0; at < call.body.instructions.size(); ++at) {
        const Position here = {static_cast<int>(call_), static_cast<int>(at)};
        wait_until(here);
        visit(call.body.instructions[at], call.call, here);
      }
    }
    wait_until({static_cast<int>(list_.calls.size()), kBeforeInputs});
    base::require(next_wait_ == list_.order.waits.size(), "verify", "{}: waits are not in order", name_of(list_.step));
    base::require(passed_.size() == list_.order.waits.size() && open_.empty(), "verify",
                  "{}: {} waits have {} places, and {} transfers are not awaited", name_of(list_.step), passed_.size(),
                  list_.order.waits.size(), open_.size());
  }

 private:
  struct Transfer {
    EventKey key;
    int queue = 0;
    std::vector<Touch> touches;
  };

  const Instruction& at(Position where) const {
    const Call& call = list_.calls[static_cast<size_t>(where.call)];
    return p_.bodies[static_cast<size_t>(call.body)].instructions[static_cast<size_t>(where.instruction)];
  }

  // Waits placed before an instruction.
  void wait_until(Position here) {
    for (; next_wait_ < list_.order.waits.size() && list_.order.waits[next_wait_].before == here; ++next_wait_) {
      const Position wait = list_.order.waits[next_wait_].wait;
      const EventKey key = key_of(at(wait), list_.calls[static_cast<size_t>(wait.call)]);
      const auto open = std::ranges::find(open_, key, &Transfer::key);
      base::require(at(wait).kind == Kind::wait && wait <= here && open != open_.end(), "verify",
                    "{}: instruction {} of call {} is awaited before instruction {} of call {}", name_of(list_.step),
                    wait.instruction, wait.call, here.instruction, here.call);
      stream_.add(open->touches);
      open_.erase(open);
    }
  }

  void copy_inputs(const Call& call) {
    for (; next_input_ < list_.order.inputs.size() && list_.order.inputs[next_input_].call == call_; ++next_input_) {
      const Touch input = touches_.of(list_.order.inputs[next_input_].buffer, true, list_, call);
      require_free({input}, -1, {static_cast<int>(call_), kBeforeInputs});
      stream_.add(input);
    }
  }

  void visit(const Instruction& i, const Call& call, Position here) {
    if (i.kind == Kind::wait) {
      passed_.insert(here);
      return;
    }
    std::vector<Touch>& own = touched_;
    touches_.get(static_cast<size_t>(here.instruction), list_, call, own);
    const int queue = queues_.of[static_cast<size_t>(call.body)][static_cast<size_t>(here.instruction)];
    require_free(own, queue, here);
    if (i.kind == Kind::compute) {
      stream_.add(own);
      return;
    }
    const bool unordered = std::ranges::binary_search(list_.order.unordered, here);
    if (i.kind == Kind::collective && p_.exchange == Exchange::in_streams)
      base::require(!stream_.must_wait(queue, own) || !unordered, "verify",
                    "{}: {} at instruction {} of call {} does not wait for what it touches", name_of(list_.step),
                    name_of(i), here.instruction, here.call);
    open_.push_back({key_of(i, call), queue, own});
  }

  // Of other queues: no transfer in flight accesses the memory.
  void require_free(const std::vector<Touch>& own, int queue, Position here) const {
    for (const Transfer& t : open_)
      base::require(t.queue == queue || !conflict(own, t.touches), "verify",
                    "{}: instruction {} of call {} touches the memory of event {}, which is awaited later",
                    name_of(list_.step), here.instruction, here.call, t.key.event);
  }

  const Program& p_;
  const CallList& list_;
  const Touches& touches_;
  const Queues& queues_;
  size_t call_ = 0, next_wait_ = 0, next_input_ = 0;
  std::vector<Transfer> open_;
  std::set<Position> passed_;   // wait instructions
  std::vector<Touch> touched_;  // by the instruction being visited
  StreamTouches stream_;
};

}  // namespace

void verify_order(const Program& p) {
  if (!p.on_device) return;
  const Touches touches(p);
  const Queues queues = queues_of(p);
  for (const CallList& list : p.lists) OrderVerifier(p, list, touches, queues).run();
}

}  // namespace kintsugi::program
