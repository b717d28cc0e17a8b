#include "kintsugi/program/verify_messages.h"

#include <algorithm>
#include <compare>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/program/byte_range.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {
namespace {

// A message, or a collective that a later call awaits, that is in flight.
struct UnderWay {
  const Instruction* start = nullptr;
  Call call = {};  // the call that starts it
  size_t at = 0;   // position in its body
  std::vector<ByteRange> reads = {}, makes = {};
  size_t from = 0;  // instruction of the current call from which it is in flight
};

// Instructions [begin, end) of a body in a slot, checked against a message started at `start` of its own.
struct Checked {
  int body = 0, slot = 0;
  int start_body = 0, start_slot = 0;
  size_t start = 0;
  size_t begin = 0, end = 0;

  auto operator<=>(const Checked&) const = default;
};

class MessageVerifier {
 public:
  MessageVerifier(const Program& p, const CallList& list, int rank)
      : p_(p),
        list_(list),
        rank_(rank),
        ranges_(byte_ranges(p)),
        messages_(p.bodies.size()),
        inputs_(first_inputs(p, list)) {
    const std::set<int> between = events_between_bodies(p);
    for (size_t b = 0; b < p.bodies.size(); ++b)
      for (size_t at = 0; at < p.bodies[b].instructions.size(); ++at) {
        const Instruction& i = p.bodies[b].instructions[at];
        if (is_message(i) || between.contains(i.event)) messages_[b].push_back(at);
      }
  }

  void run() {
    for (const VisitedCall& call : walk(p_, list_)) {
      for (size_t at : messages_[static_cast<size_t>(call.call.body)]) {
        const Instruction& i = call.body.instructions[at];
        const auto message = under_way_.find(key_of(i, call.call));
        const bool found = message != under_way_.end();
        if (i.kind == Kind::collective) {
          if (found) refuse(call, at, "is already in flight");
          start(i, call.call, at);
        } else {
          if (!found) refuse(call, at, "waits for what was not started");
          check(message->second, call, at);
          under_way_.erase(message);
        }
      }
      for (auto& [key, message] : under_way_) {
        check(message, call, call.body.instructions.size());
        message.from = 0;
      }
    }
    if (under_way_.empty()) return;
    const auto& [key, message] = *under_way_.begin();
    throw base::InternalError("verify", "{}: rank {}, micro-batch {}: nothing waits for {}", name_of(list_.step), rank_,
                              key.micro_batch, describe(p_, *message.start, rank_));
  }

 private:
  void start(const Instruction& i, const Call& call, size_t at) {
    const size_t behind = p_.bodies[static_cast<size_t>(call.body)].instructions.size();
    UnderWay& message =
        under_way_[key_of(i, call)] = {.start = &i, .call = call, .at = at, .from = is_message(i) ? at + 1 : behind};
    for (BufferId b : i.ins) message.reads.push_back(range(b, call));
    for (BufferId b : i.outs) message.makes.push_back(range(b, call));
  }

  // Checks the instructions of a call, up to `end`, while a message is in flight.
  void check(const UnderWay& message, const VisitedCall& call, size_t end) {
    if (message.from == 0)
      for (BufferId b : inputs_[call.position])
        if (const char* still = conflict(message, range(b, call.call), true))
          refuse(message, fmt::format("before {} fills", describe(p_, call.call)), b, still);
    const Checked key = {
        call.call.body, call.call.slot, message.call.body, message.call.slot, message.at, message.from, end};
    if (!checked_.insert(key).second) return;
    for (size_t at = message.from; at < end; ++at) check_instruction(message, call, at);
  }

  void check_instruction(const UnderWay& message, const VisitedCall& call, size_t at) const {
    const Instruction& i = call.body.instructions[at];
    if (i.kind == Kind::wait) return;  // what it waits for was checked at the start
    const auto operand = [&](BufferId b, bool writes) {
      const char* still = conflict(message, range(b, call.call), writes);
      if (!still) return;
      refuse(message, fmt::format("{} {}", position_text(call, at), writes ? "writes" : "reads"), b, still);
    };
    for (BufferId b : i.ins) operand(b, false);
    for (BufferId b : i.outs) operand(b, true);
    if (i.workspace != kNoBuffer) operand(i.workspace, true);
  }

  ByteRange range(BufferId b, const Call& call) const {
    return in_slot(ranges_[static_cast<size_t>(b)], list_, call.slot);
  }

  // How a message in flight conflicts with an access to `bytes`; null if it does not.
  static const char* conflict(const UnderWay& message, const ByteRange& bytes, bool written) {
    const auto overlaps = [&](const ByteRange& other) { return other.overlaps(bytes); };
    if (std::any_of(message.makes.begin(), message.makes.end(), overlaps)) return "makes";
    if (written && std::any_of(message.reads.begin(), message.reads.end(), overlaps)) return "reads";
    return nullptr;
  }

  // "at instruction 3 of forward, micro-batch 0 (gelu)"
  std::string position_text(const VisitedCall& call, size_t at) const {
    const Instruction& i = call.body.instructions[at];
    return fmt::format("at instruction {} of {} ({})", at, describe(p_, call.call),
                       i.kind == Kind::compute ? i.kernel : describe(p_, i, rank_));
  }

  [[noreturn]] void refuse(const VisitedCall& call, size_t at, const char* does) const {
    throw base::InternalError("verify", "{}: rank {} {} {}", name_of(list_.step), rank_, position_text(call, at), does);
  }
  [[noreturn]] void refuse(const UnderWay& message, const std::string& does, BufferId b, const char* still) const {
    throw base::InternalError("verify", "{}: rank {} {} #{} \"{}\", which instruction {} of {} ({}) still {}",
                              name_of(list_.step), rank_, does, b, p_.buffer(b).name, message.at,
                              describe(p_, message.call), describe(p_, *message.start, rank_), still);
  }

  const Program& p_;
  const CallList& list_;
  int rank_;
  std::vector<ByteRange> ranges_;              // [buffer]
  std::vector<std::vector<size_t>> messages_;  // [body]: starts of messages and waits for them
  std::vector<std::vector<BufferId>> inputs_;  // [call]: those that the run fills before it
  std::map<EventKey, UnderWay> under_way_;
  std::set<Checked> checked_;  // the same bytes in each call
};

}  // namespace

void verify_messages(const Program& p, int rank) {
  for (const CallList& list : p.lists) MessageVerifier(p, list, rank).run();
}

}  // namespace kintsugi::program
