#include "kintsugi/run/groups.h"

#include <algorithm>
#include <vector>

#include "kintsugi/comm/nccl/group.h"
#include "kintsugi/program/ordered_sums.h"

namespace kintsugi::run {

using program::Instruction;
using program::Kind;

namespace {

// The other end of a channel of messages; -1 for a channel of collectives.
int peer_of(const program::Program& p, const program::Channel& channel, int rank) {
  for (const program::Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective && i.group == channel.first && i.channel == channel.second && i.peer >= 0)
        return p.mesh.group(rank, i.group)[static_cast<size_t>(i.peer)];
  return -1;
}

}  // namespace

Groups::Groups(const program::Program& p, int rank, std::chrono::milliseconds time_limit, std::byte* sums,
               const Make& make) {
  for (const program::Body& body : p.bodies)
    for (const Instruction& i : body.instructions)
      if (i.kind == Kind::collective) groups_[{i.group, i.channel}] = nullptr;
  auto open = program::open_transfers(p);
  const program::OrderedSums ordered = program::ordered_sums(p);
  for (auto& [key, group] : groups_) {
    comm::GroupOptions options;
    std::vector<int> ranks = p.mesh.group(rank, key.first);
    if (const int peer = peer_of(p, key, rank); peer >= 0) {
      ranks = {rank, peer};
      std::sort(ranks.begin(), ranks.end());
      // A message is open until both ranks have waited for it, and the other rank may have as many open as this one.
      options = {.collectives = 0, .messages = 2 * std::max<size_t>(1, open[key].count)};
    }
    options.in_rank_order = p.sums_in_rank_order;
    if (const auto* sum = ordered.find(key); sums != nullptr && options.in_rank_order && sum != nullptr)
      options.sums = {sums + sum->offset, static_cast<size_t>(sum->bytes)};
    options.time_limit = time_limit;
    group = make(ranks, options, open[key]);
  }
}

void Groups::end() {
  std::vector<comm::Communicator*> groups;
  for (const auto& [channel, group] : groups_) groups.push_back(group.get());
  comm::end_nccl_groups(groups);
}

}  // namespace kintsugi::run
