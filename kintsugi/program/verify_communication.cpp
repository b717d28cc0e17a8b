#include "kintsugi/program/verify_communication.h"

#include <algorithm>
#include <map>
#include <set>

#include "kintsugi/base/error.h"
#include "kintsugi/program/byte_range.h"
#include "kintsugi/program/describe.h"
#include "kintsugi/program/under_way.h"
#include "kintsugi/program/verify_messages.h"
#include "kintsugi/program/verify_operands.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {
namespace {

// The start of a collective or copy.
struct Start {
  const Body* body = nullptr;
  size_t at = 0;
  int64_t waited = -1;  // instruction that waits for it
  int number = -1;      // while it is in flight

  const Instruction& instruction() const { return body->instructions[at]; }
};

// Shared by the checks of all bodies.
struct Facts {
  Facts(const Program& p, int one_rank) : program(p), rank(one_rank), ranges(byte_ranges(p)) {
    const std::set<int> events = events_between_bodies(p);
    for (const Body& body : p.bodies)
      for (size_t at = 0; at < body.instructions.size(); ++at) {
        const Instruction& i = body.instructions[at];
        if (i.kind == Kind::collective && events.contains(i.event))
          awaited_later.try_emplace(i.event, Start{&body, at});
      }
  }

  const Program& program;
  int rank;
  std::vector<ByteRange> ranges;       // [buffer]
  std::map<int, Start> awaited_later;  // [event]: awaited in another body
};

class BodyVerifier {
 public:
  BodyVerifier(const Facts& facts, Step list, const Body& body)
      : facts_(facts), p_(facts.program), list_(list), body_(body), under_way_(p_) {}

  void run() {
    std::set<int> own;
    for (const Instruction& i : body_.instructions)
      if (i.kind != Kind::wait) own.insert(i.event);
    for (const Instruction& i : body_.instructions) {  // waits for what an earlier call has started
      const auto start = facts_.awaited_later.find(i.event);
      if (i.kind == Kind::wait && start != facts_.awaited_later.end() && !own.contains(i.event))
        begin(i.event, start->second);
    }
    for (size_t at = 0; at < body_.instructions.size(); ++at) step(at);
    for (const auto& [number, i] : under_way_.list())
      if (!facts_.awaited_later.contains(i.event)) refuse(started_.at(i.event).at, " never waits for it");
  }

 private:
  // "train: rank 1 at instruction 3 of forward (gelu)"
  std::string where(size_t at) const {
    const Instruction& i = body_.instructions[at];
    return fmt::format("{}: rank {} at instruction {} of {} ({})", name_of(list_), facts_.rank, at, body_.name,
                       i.kind == Kind::compute ? i.kernel : describe(i));
  }
  std::string describe(const Instruction& i) const { return program::describe(p_, i, facts_.rank); }

  template <typename... Args>
  [[noreturn]] void refuse(size_t at, fmt::format_string<Args...> format, Args&&... args) const {
    throw base::InternalError("verify", "{}{}", where(at), fmt::format(format, std::forward<Args>(args)...));
  }

  void step(size_t at) {
    const Instruction& i = body_.instructions[at];
    if (i.kind == Kind::wait) return wait(i, at);
    for (int number : under_way_.near(i)) check_conflict(started_.at(under_way_[number].event), i, at);
    if (i.kind == Kind::collective || i.kind == Kind::copy) start(i, at);
  }

  void begin(int event, Start start) {
    start.number = under_way_.add(start.instruction());
    started_[event] = start;
  }

  void start(const Instruction& i, size_t at) {
    verify_operands(p_, facts_.ranges, i, [&] { return where(at); });
    if (i.event < 0) refuse(at, ": it has no event");
    if (const auto known = started_.find(i.event); known != started_.end())
      refuse(at, ": it has the event {} of instruction {}", i.event, known->second.at);
    begin(i.event, {&body_, at});
  }

  void wait(const Instruction& i, size_t at) {
    const auto found = started_.find(i.event);
    if (found == started_.end()) refuse(at, " waits for what was not started");
    Start& start = found->second;
    const Instruction& of = start.instruction();
    if (name_of(of) != name_of(i) || of.ins != i.ins || of.outs != i.outs || of.group != i.group || of.peer != i.peer)
      refuse(at, " waits for instruction {}, which is {}", start.at, describe(of));
    if (start.waited >= 0) refuse(at, " waits for instruction {}, as instruction {} did", start.at, start.waited);
    start.waited = static_cast<int64_t>(at);
    under_way_.remove(start.number);
  }

  // Checks an instruction between the start of a collective or copy and the wait for it.
  void check_conflict(const Start& start, const Instruction& i, size_t at) const {
    const Instruction& pending = start.instruction();
    const auto check = [&](const char* does, BufferId b, const std::vector<BufferId>& of, const char* still) {
      if (overlap(b, of))
        refuse(at, " {} #{} \"{}\", which instruction {} ({}) still {}", does, b, p_.buffer(b).name, start.at,
               describe(pending), still);
    };
    const auto written = [&](BufferId b) {
      check("writes", b, pending.outs, "makes");
      check("writes", b, pending.ins, "reads");
    };
    for (BufferId b : i.ins) check("reads", b, pending.outs, "makes");
    for (BufferId b : i.outs) written(b);
    if (i.workspace != kNoBuffer) written(i.workspace);
  }

  bool overlap(BufferId a, const std::vector<BufferId>& list) const {
    return std::any_of(list.begin(), list.end(), [&](BufferId b) {
      return facts_.ranges[static_cast<size_t>(a)].overlaps(facts_.ranges[static_cast<size_t>(b)]);
    });
  }

  const Facts& facts_;
  const Program& p_;
  Step list_;
  const Body& body_;
  std::map<int, Start> started_;  // [event]
  UnderWay under_way_;
};

}  // namespace

void verify_communication(const Program& p, int rank) {
  const Facts facts(p, rank);
  std::set<int> done;
  for (const CallList& list : p.lists)
    for (const VisitedCall& call : first_calls(p, list))
      if (done.insert(call.call.body).second) BodyVerifier(facts, list.step, call.body).run();
  verify_messages(p, rank);
}

}  // namespace kintsugi::program
