// The sequences of collectives of all ranks, run against each other. Used by verify_ranks, which says what is asked.
#pragma once

#include <map>
#include <span>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "kintsugi/program/program.h"

namespace kintsugi::program {

class RankRun {
 public:
  // `distinct`: the programs that there are; `of_rank`: which of them each rank has; `family`: the same number for
  // those with the same buffers; `factors`: ranks that differ along others only are alike, and the first stands for
  // them.
  RankRun(std::vector<const Program*> distinct, const std::vector<int>& of_rank, std::vector<int> family,
          std::vector<mesh::Factor> factors);

  // InternalError where a rank would wait forever.
  void check(Step step);
  // InternalError where a rank makes a group that another of its members does not.
  void check_groups();

 private:
  // meet: a collective, which all members of its group must have come to. post: one end of a message is enqueued. take:
  // the wait for it, until the other end is enqueued too.
  enum class Kind : uint8_t { meet, post, take };
  struct Operation {
    int body = 0;
    size_t at = 0;
    const Instruction* instruction = nullptr;
    int signature = 0;  // the same where kind, value, bytes, dtype, reduction and group are
    int group = 0;      // a place in groups_
    Kind kind = Kind::meet;
  };
  using Operations = std::vector<Operation>;
  struct Block {
    int64_t micro_batch = -1;
    const Operations* operations = nullptr;
  };
  struct Rank {
    int rank = 0;
    size_t role = 0;
    size_t block = 0, at = 0;  // where it is
    bool queued = false;
  };
  struct Members {
    std::vector<int> ranks;  // places in ranks_
    size_t here = 0;
  };

  int group_of(const std::vector<mesh::Factor>& all);
  int signature_of(const Program& p, const Instruction& i);
  Operations operations_of(const Program& p, int body);

  void run(std::string_view name);
  void arrive(int r);
  void advance(int r);
  void settle(Rank& r) const;  // past blocks without operations
  bool ended(const Rank& r) const { return r.block == blocks_[r.role].size(); }
  const Operation& now(const Rank& r) const { return (*blocks_[r.role][r.block].operations)[r.at]; }
  Members& members(const Rank& r, int group);
  bool same(const Rank& a, const Rank& b) const;
  int peer_of(const Rank& r) const;
  // One end of the messages of a channel, in the order in which they were enqueued.
  struct End {
    int signature = 0;
    int64_t micro_batch = -1;
    bool operator==(const End&) const = default;
  };
  std::vector<End>& ends(const Rank& r, bool own);
  void post(const Rank& r);
  bool taken(const Rank& r);
  const Rank* missing(const Rank& r);  // one that it waits for, or null
  std::string place(const Rank& r) const;
  [[noreturn]] void report(std::string_view name);

  std::vector<const Program*> distinct_;
  std::vector<int> family_;
  std::vector<mesh::Factor> factors_;
  std::vector<std::vector<Operations>> bodies_;  // by role, by body
  std::map<std::string, int> signatures_;
  struct Group {
    std::vector<mesh::Factor> all, kept;  // kept: those of factors_
  };
  std::vector<Group> groups_;
  std::vector<int> index_;  // by rank: its place in ranks_, or -1
  std::vector<Rank> ranks_;
  std::vector<std::vector<Block>> blocks_;  // by role: of the list that is run
  std::unordered_map<int64_t, Members> members_;
  std::vector<int> queue_;
  std::map<std::tuple<int, int, std::string, bool>, std::vector<End>> ends_;  // from, to, channel, of the receiver
  std::map<std::tuple<int, int, int64_t>, size_t> posted_;  // rank, event, micro-batch: place in ends_
};

}  // namespace kintsugi::program
