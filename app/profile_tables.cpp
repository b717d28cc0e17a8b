#include "app/profile_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "app/fold.h"
#include "app/table.h"
#include "kintsugi/base/format.h"

namespace kintsugi::app {
namespace {

using profile::InstructionTime;
using profile::OperationTime;
using profile::Part;
using profile::RankProfile;
using profile::TransferTime;
using train::Limits;
using train::ProfiledRun;

constexpr size_t kMostRanks = 32, kMostInstructions = 12, kMostName = 30;  // in a table
constexpr double kLeastShare = 1e-3;                                       // of the step, of an operation that is shown

std::string percent(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string rate(double amount, double seconds, std::string_view unit) {
  return amount > 0 && seconds > 0 ? base::format_rate(amount / seconds, unit) : "";
}

// How near it is to what the machine can do: in arithmetic or in memory, whichever it is nearer to.
std::string of_limit(const Limits& limits, const std::string& operation, double flops, double bytes, double seconds) {
  if (seconds <= 0 || (flops <= 0 && bytes <= 0)) return "";
  const double arithmetic = flops / seconds / limits.flops_of(operation), memory = bytes / seconds / limits.bytes;
  return fmt::format("{:.0f}% {}", 100 * std::max(arithmetic, memory), arithmetic >= memory ? "flops" : "memory");
}

std::string ranks_table(const ProfiledRun& run) {
  std::vector<std::vector<std::string>> rows = {
      {"rank", "stage", "step", "compute", "communication", "waiting", "most for", "inputs", "between"}};
  for (const RankProfile& r : run.profile.of_ranks) {
    if (rows.size() > kMostRanks) break;
    const auto most = std::ranges::max_element(r.waits, {}, &profile::WaitedFor::seconds);
    rows.push_back(
        {fmt::format("{}", r.rank), fmt::format("{}", r.stage), base::format_time(r.seconds),
         percent(r.of(Part::compute) / r.seconds), percent(r.of(Part::communication) / r.seconds),
         percent(r.of(Part::waiting) / r.seconds),
         most == r.waits.end() ? "" : fmt::format("rank {} {}", most->rank, percent(most->seconds / r.seconds)),
         percent(r.inputs / r.seconds), percent(r.between / r.seconds)});
  }
  std::string text = "\nwhere the time of a step went\n" + table_within(kColumns, rows);
  if (const size_t all = run.profile.of_ranks.size(); all > kMostRanks)
    text += fmt::format("  and {} more ranks: --csv has all\n", all - kMostRanks);
  return text;
}

// The mean over ranks.
std::vector<OperationTime> operations_of(const ProfiledRun& run) {
  std::map<std::tuple<Part, std::string, std::string>, OperationTime> sums;
  const auto ranks = static_cast<double>(run.profile.of_ranks.size());
  for (const RankProfile& r : run.profile.of_ranks)
    for (const OperationTime& o : r.operations) {
      OperationTime& sum = sums[{o.part, o.operation, o.phase}];
      sum.operation = o.operation, sum.phase = o.phase, sum.part = o.part;
      sum.calls += o.calls / ranks, sum.seconds += o.seconds / ranks, sum.flops += o.flops / ranks;
      sum.memory_bytes += o.memory_bytes / ranks, sum.wire_bytes += o.wire_bytes / ranks;
    }
  std::vector<OperationTime> list;
  for (const auto& [key, sum] : sums) list.push_back(sum);
  std::ranges::stable_sort(list, std::ranges::greater(), &OperationTime::seconds);
  std::ranges::stable_sort(list, {}, &OperationTime::part);
  return list;
}

double mean_step(const ProfiledRun& run) {
  double sum = 0;
  for (const RankProfile& r : run.profile.of_ranks) sum += r.seconds;
  return sum / static_cast<double>(run.profile.of_ranks.size());
}

std::string operations_table(const ProfiledRun& run) {
  const double step = mean_step(run);
  std::vector<std::vector<std::string>> rows = {
      {"operation", "phase", "calls", "time", "share", "flops", "memory", "of limit"}};
  double rest = 0;
  Part part = Part::compute;
  for (const OperationTime& o : operations_of(run)) {
    if (o.seconds < kLeastShare * step) {
      rest += o.seconds;
      continue;
    }
    if (o.part != part || rows.size() == 1) rows.push_back({std::string(name_of(o.part))});
    part = o.part;
    rows.push_back({"  " + o.operation, o.phase, number_cell(o.calls), base::format_time(o.seconds),
                    percent(o.seconds / step), rate(o.flops, o.seconds, "FLOP/s"),
                    rate(o.memory_bytes, o.seconds, "B/s"),
                    of_limit(run.limits, o.operation, o.flops, o.memory_bytes, o.seconds)});
  }
  if (rest > 0) rows.push_back({"all else", "", "", base::format_time(rest), percent(rest / step)});
  return "\nby operation and phase, the mean of all ranks\n" + table_within(kColumns, rows);
}

std::string instructions_table(const ProfiledRun& run) {
  struct Row {
    const RankProfile* rank;
    const InstructionTime* instruction;
  };
  std::vector<Row> all;
  for (const RankProfile& r : run.profile.of_ranks)
    for (const InstructionTime& i : r.instructions) all.push_back({&r, &i});
  const size_t shown = std::min(all.size(), kMostInstructions);
  std::ranges::partial_sort(all, all.begin() + static_cast<std::ptrdiff_t>(shown), std::ranges::greater(),
                            [](const Row& row) { return row.instruction->seconds; });
  std::vector<std::vector<std::string>> rows = {
      {"instruction", "layer", "rank", "calls", "a call", "share", "waiting", "of limit"}};
  for (size_t n = 0; n < shown; ++n) {
    const auto& [r, i] = all[n];
    const std::string launched = i->launched > 1 ? fmt::format(" and {} more", i->launched - 1) : "";
    const std::string name = fmt::format("{} {}: {}{}", i->body, i->at, i->operation, launched);
    rows.push_back({base::without_middle(name, kMostName), fmt::format("{}", i->layer), fmt::format("{}", r->rank),
                    number_cell(i->calls), base::format_time(i->seconds / i->calls), percent(i->seconds / r->seconds),
                    i->communicates ? percent(i->seconds > 0 ? i->waiting / i->seconds : 0) : "",
                    of_limit(run.limits, i->operation, i->flops, i->memory_bytes, i->seconds)});
  }
  return fmt::format("\nthe heaviest instructions of {}\n", base::group_digits(std::ssize(all))) +
         table_within(kColumns, rows);
}

std::string transfers_table(const ProfiledRun& run) {
  std::map<std::pair<std::string, std::string>, TransferTime> sums;
  std::map<std::pair<std::string, std::string>, double> ranks;
  for (const RankProfile& r : run.profile.of_ranks)
    for (const TransferTime& t : r.transfers) {
      TransferTime& sum = sums[{t.operation, t.over}];
      sum.calls += t.calls, sum.wire_bytes += t.wire_bytes, sum.seconds += t.seconds, sum.waiting += t.waiting;
      sum.timed += t.timed, sum.timed_seconds += t.timed_seconds, sum.timed_bytes += t.timed_bytes;
      ranks[{t.operation, t.over}] += 1;
    }
  if (sums.empty()) return "";
  std::vector<std::vector<std::string>> rows = {
      {"transfer", "over", "ranks", "calls", "sent", "exposed", "waiting", "timed", "a call", "rate"}};
  for (const auto& [key, t] : sums) {
    const double n = ranks[key];
    rows.push_back({key.first, key.second, fmt::format("{}", n), number_cell(t.calls / n), bytes_cell(t.wire_bytes / n),
                    base::format_time(t.seconds / n), base::format_time(t.waiting / n), number_cell(t.timed / n),
                    t.timed > 0 ? base::format_time(t.timed_seconds / t.timed) : "",
                    rate(t.timed_bytes, t.timed_seconds, "B/s")});
  }
  return "\ntransfers of a rank in a step\n" + table_within(kColumns, rows);
}

}  // namespace

std::string print_profile(const ProfiledRun& run) {
  return ranks_table(run) + operations_table(run) + instructions_table(run) + transfers_table(run);
}

std::string print_bubbles(const std::vector<report::StageBubble>& bubbles) {
  std::vector<std::vector<std::string>> rows = {
      {"stage", "planned", "with measured tasks", "as run", "waiting", "most for", "communication", "rest"}};
  for (size_t stage = 0; stage < bubbles.size(); ++stage) {
    const report::StageBubble& b = bubbles[stage];
    rows.push_back({fmt::format("{}", stage), percent(b.planned), percent(b.replayed), percent(b.run),
                    percent(b.waiting), b.rank < 0 ? "" : fmt::format("rank {}", b.rank), percent(b.communication),
                    percent(b.rest)});
  }
  return "\nthe bubble, idle over busy time; as run: waiting, communication and the rest\n" +
         table_within(kColumns, rows);
}

std::string profile_csv(const ProfiledRun& run) {
  std::string text =
      "rank,stage,body,instruction,operation,phase,layer,value,calls,seconds,waiting,flops,memory_bytes,wire_bytes,"
      "launched\n";
  for (const RankProfile& r : run.profile.of_ranks) {
    double known = 0, progress = 0;
    for (const InstructionTime& i : r.instructions) {
      known += i.seconds;
      text += fmt::format("{},{},{},{},{},{},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{}\n", r.rank, r.stage,
                          i.body, i.at, i.operation, i.phase, i.layer, i.value, i.calls, i.seconds, i.waiting, i.flops,
                          i.memory_bytes, i.wire_bytes, i.launched);
    }
    progress = r.seconds - known - r.inputs - r.between;
    for (const auto& [name, seconds] : {std::pair{"moving transfers on", progress}, std::pair{"inputs", r.inputs},
                                        std::pair{"between instructions", r.between}})
      text += fmt::format("{},{},,,{},,,,,{:.9g},,,,,\n", r.rank, r.stage, name, seconds);
  }
  return text;
}

}  // namespace kintsugi::app
