#include "kintsugi/profile/arrivals.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string>

#include "kintsugi/base/error.h"
#include "kintsugi/program/halo.h"
#include "kintsugi/program/queue.h"
#include "kintsugi/program/walk.h"

namespace kintsugi::profile {

using program::Collective;
using program::Instruction;
using program::Program;

namespace {

// FNV-1a.
uint64_t hash_of(const std::string& text) {
  uint64_t hash = 14695981039346656037u;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return hash;
}

// The members of its channel, in communicator order.
std::vector<int> channel_of(const Program& p, const Instruction& i, int rank) {
  return program::members(p.mesh, program::queue_of(i), rank);
}

// The same text on all members; a channel of messages runs from one rank to the other.
std::string common_text(const Instruction& i, const std::vector<int>& channel, int rank) {
  std::string text = fmt::format("{} {}", i.channel, fmt::join(channel, " "));
  if (!program::is_message(i)) return text;
  const int other = channel[0] == rank ? channel[1] : channel[0];
  const bool sends = i.collective == Collective::send;
  return text + fmt::format(" from {}", sends ? rank : other);
}

// A shift involves only neighbors; so does a halo, usually.
std::vector<int> awaited_members(const Program& p, const Instruction& i, const std::vector<int>& channel, int rank) {
  if (i.collective == Collective::halo) {
    std::vector<int> near = {rank};
    const program::HaloRows rows = program::halo_rows(p.mesh, i.cuts, rank);
    for (const program::HaloMessage& m : rows.received) near.push_back(channel[static_cast<size_t>(m.place)]);
    std::ranges::sort(near);
    return near;
  }
  if (i.collective != Collective::shift) return channel;
  const size_t n = channel.size();
  const auto at = static_cast<size_t>(std::ranges::find(channel, rank) - channel.begin());
  std::vector<int> near = {rank, channel[(at + 1) % n], channel[(at + n - 1) % n]};
  std::ranges::sort(near);
  near.erase(std::unique(near.begin(), near.end()), near.end());
  return near;
}

}  // namespace

std::vector<Started> started_by(const Program& p, program::Step step, int rank) {
  std::vector<Started> all;
  std::map<uint64_t, size_t> numbers;
  program::for_each_instruction(p, p.list(step), [&](const auto&, size_t, const Instruction& i) {
    Started& started = all.emplace_back();
    if (!program::is_collective(i)) return;
    const std::vector<int> channel = channel_of(p, i, rank);
    started.key.channel = hash_of(common_text(i, channel, rank));
    started.key.number = numbers[started.key.channel]++;
    started.members = awaited_members(p, i, channel, rank);
  });
  return all;
}

// Per channel: its hash, the number of transfers, their times.
std::vector<int64_t> arrivals_of(std::span<const Started> started, const StepTimes& times, int64_t offset) {
  std::map<uint64_t, std::vector<int64_t>> by_channel;
  for (size_t i = 0; i < started.size(); ++i)
    if (!started[i].members.empty()) by_channel[started[i].key.channel].push_back(times.instructions[i].begin + offset);
  std::vector<int64_t> told;
  for (const auto& [channel, list] : by_channel) {
    told.push_back(static_cast<int64_t>(channel));
    told.push_back(std::ssize(list));
    told.insert(told.end(), list.begin(), list.end());
  }
  return told;
}

Arrivals::Arrivals(const std::vector<std::vector<int64_t>>& by_rank) {
  for (size_t rank = 0; rank < by_rank.size(); ++rank)
    for (auto at = by_rank[rank].begin(); at != by_rank[rank].end();) {
      const auto channel = static_cast<uint64_t>(*at);
      const int64_t count = at[1];
      times_[{static_cast<int>(rank), channel}] = {at + 2, at + 2 + count};
      at += 2 + count;
    }
}

Arrivals::Last Arrivals::last(const Started& started) const {
  Last last;
  for (const int rank : started.members) {
    const auto found = times_.find({rank, started.key.channel});
    base::require(found != times_.end() && started.key.number < found->second.size(), "profile",
                  "rank {} did not come to transfer {} of a channel", rank, started.key.number);
    const int64_t time = found->second[started.key.number];
    if (last.rank < 0 || time > last.time) last = {rank, time};
  }
  return last;
}

}  // namespace kintsugi::profile
