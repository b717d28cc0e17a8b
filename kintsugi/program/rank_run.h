// Runs the sequences of collectives of all ranks against each other, for verify_ranks, which states the requirements.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "kintsugi/program/program.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::program {

// The programs of a mesh's ranks.
struct RankPrograms {
  std::vector<const Program*> distinct;
  std::vector<int> of_rank;       // index into `distinct`
  std::vector<int> same_buffers;  // [program]: the first program with the same buffers
};

class RankRun {
 public:
  // Ranks that differ only along other factors behave alike, and the first represents them.
  RankRun(const RankPrograms& programs, std::vector<mesh::Factor> factors);

  // Runs the list of calls of that index. Throws InternalError on deadlock.
  void check(size_t list);
  // Throws InternalError if a rank creates a group that another of its members does not.
  void check_groups();

 private:
  // join: a collective, which completes when all members of its group have reached it. post: one end of a message
  // starts, once the previous message of its channel has completed. match: the wait for it, which completes when the
  // other end has started too.
  enum class Action : uint8_t { join, post, match };
  struct Operation {
    int body = 0;
    size_t at = 0;
    const Instruction* instruction = nullptr;
    int signature = 0;  // equal iff kind, value, bytes, dtype, reduction and group are
    int group = 0;      // index into groups_
    int channel = 0;    // by name
    Action action = Action::join;
  };
  using Operations = std::vector<Operation>;
  struct RankCall {
    int64_t micro_batch = -1;
    const Operations* operations = nullptr;
  };
  struct Rank {
    int rank = 0;
    size_t program = 0;              // index into `distinct`
    size_t call = 0, operation = 0;  // reached so far
    bool queued = false;
  };
  struct Members {
    std::vector<int> ranks;  // indices into ranks_
    size_t num_arrived = 0;
  };
  // One end of a message.
  struct MessageEnd {
    int signature = 0;
    int64_t micro_batch = -1;
    bool operator==(const MessageEnd&) const = default;
  };
  struct Group {
    std::vector<mesh::Factor> all, kept;  // kept: those in factors_
  };

  int group_of(const std::vector<mesh::Factor>& factors);
  int signature_of(const Program& p, const Instruction& i);
  Operations operations_of(const Program& p, int body);

  void run(std::string_view name);
  void arrive(int r);
  void post(int r);
  void join(int r);
  void advance(int r);
  void enqueue(int r);
  void skip_empty_calls(Rank& r) const;  // those without operations
  bool ended(const Rank& r) const { return r.call == calls_[r.program].size(); }
  const RankCall& call_of(const Rank& r) const { return calls_[r.program][r.call]; }
  const Operation& operation_of(const Rank& r) const { return (*call_of(r).operations)[r.operation]; }
  EventKey key_of(const Rank& r) const { return {operation_of(r).instruction->event, call_of(r).micro_batch}; }
  Members& members(const Rank& r, int group);
  bool same_operation(const Rank& a, const Rank& b) const;
  int peer_of(const Rank& r) const;
  std::vector<MessageEnd>& message_ends(const Rank& r, bool own);
  bool is_matched(const Rank& r);
  bool may_post(const Rank& r);
  const Rank* awaited_by(const Rank& r);  // a rank that it waits for, or null
  std::string position_text(const Rank& r) const;
  [[noreturn]] void report(std::string_view name);

  RankPrograms programs_;
  std::vector<mesh::Factor> factors_;
  std::vector<std::vector<Operations>> bodies_;  // [program][body]
  std::map<std::string, int> signatures_, channels_;
  std::vector<Group> groups_;
  std::vector<int> position_;  // [rank]: index into ranks_, or -1
  std::vector<Rank> ranks_;
  // State of the list being run.
  std::vector<std::vector<RankCall>> calls_;  // [program]
  std::unordered_map<int64_t, Members> members_;
  std::vector<int> queue_;  // ranks that may proceed: indices into ranks_
  // By sender, receiver, channel, and whether it is the receiver's end: in enqueue order.
  std::map<std::tuple<int, int, int, bool>, std::vector<MessageEnd>> message_ends_;
  std::map<std::tuple<int, EventKey>, size_t> posted_;  // by rank: index into message_ends_
};

}  // namespace kintsugi::program
