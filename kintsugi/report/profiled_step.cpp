#include "kintsugi/report/profiled_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "kintsugi/base/format.h"
#include "kintsugi/report/html.h"
#include "kintsugi/report/measured_pictures.h"

namespace kintsugi::report {
namespace {

using profile::OperationTime;
using profile::Part;
using profile::RankProfile;
using profile::StepProfile;
using profile::TransferTime;

constexpr size_t kMostRankRows = 64;

std::string duration(double seconds) {
  return seconds >= 1      ? fmt::format("{:.3f} s", seconds)
         : seconds >= 1e-3 ? fmt::format("{:.2f} ms", 1e3 * seconds)
                           : fmt::format("{:.1f} us", 1e6 * seconds);
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string ranks_of_step(const StepProfile& profile) {
  Table table = {
      .align = "rrrrrrlrr",
      .head = {"rank", "stage", "step", "compute", "communication", "waiting", "for whom", "inputs", "between"},
      .wide = true};
  for (size_t i = 0; i < std::min(profile.of_ranks.size(), kMostRankRows); ++i) {
    const RankProfile& r = profile.of_ranks[i];
    std::vector<profile::WaitedFor> waits = r.waits;
    std::ranges::sort(waits, std::ranges::greater(), &profile::WaitedFor::seconds);
    std::string whom;
    for (size_t w = 0; w < std::min<size_t>(waits.size(), 3) && waits[w].seconds > 5e-4 * r.seconds; ++w)
      whom += fmt::format("{}rank {} {}", w == 0 ? "" : ", ", waits[w].rank, share_text(waits[w].seconds / r.seconds));
    table.rows.push_back({fmt::format("{}", r.rank), fmt::format("{}", r.stage), duration(r.seconds),
                          share_text(r.of(Part::compute) / r.seconds),
                          share_text(r.of(Part::communication) / r.seconds),
                          share_text(r.of(Part::waiting) / r.seconds), whom, share_text(r.inputs / r.seconds),
                          share_text(r.between / r.seconds)});
  }
  return html_table(table);
}

// The mean over ranks.
std::string operations_of_step(const StepProfile& profile) {
  std::map<std::tuple<Part, std::string, std::string>, OperationTime> sums;
  double step = 0;
  for (const RankProfile& r : profile.of_ranks) {
    step += r.seconds;
    for (const OperationTime& o : r.operations) {
      OperationTime& sum = sums[{o.part, o.operation, o.phase}];
      sum.calls += o.calls, sum.seconds += o.seconds, sum.flops += o.flops, sum.memory_bytes += o.memory_bytes;
    }
  }
  std::vector<std::pair<std::tuple<Part, std::string, std::string>, OperationTime>> sorted(sums.begin(), sums.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), [](const auto& row) { return row.second.seconds; });
  const auto ranks = static_cast<double>(profile.of_ranks.size());
  Table table = {.align = "lllrrrrr",
                 .head = {"operation", "phase", "part", "calls", "time", "of the step", "arithmetic", "memory"},
                 .wide = true};
  for (const auto& [key, o] : sorted) {
    const auto& [part, operation, phase] = key;
    const auto rate = [&](double amount, std::string_view unit) {
      return amount > 0 && o.seconds > 0 ? base::format_rate(amount / o.seconds, unit) : std::string();
    };
    table.rows.push_back({operation, phase, std::string(name_of(part)), fmt::format("{:.4g}", o.calls / ranks),
                          duration(o.seconds / ranks), share_text(o.seconds / step), rate(o.flops, "FLOP/s"),
                          rate(o.memory_bytes, "B/s")});
  }
  return html_details("By operation and phase, the mean of the ranks", html_table(table));
}

std::string transfers_of_step(const StepProfile& profile) {
  std::map<std::pair<std::string, std::string>, std::pair<TransferTime, double>> sums;  // and the number of ranks
  for (const RankProfile& r : profile.of_ranks)
    for (const TransferTime& t : r.transfers) {
      auto& [sum, ranks] = sums[{t.operation, t.over}];
      sum.calls += t.calls, sum.wire_bytes += t.wire_bytes, sum.seconds += t.seconds, sum.waiting += t.waiting;
      sum.timed += t.timed, sum.timed_seconds += t.timed_seconds, sum.timed_bytes += t.timed_bytes;
      ranks += 1;
    }
  if (sums.empty()) return "";
  Table table = {
      .align = "llrrrrrrr",
      .head = {"transfer", "over", "ranks", "calls", "bytes sent", "exposed", "waiting", "a call", "bandwidth"},
      .wide = true};
  for (const auto& [key, sum] : sums) {
    const auto& [t, ranks] = sum;
    table.rows.push_back(
        {key.first, key.second, fmt::format("{}", ranks), fmt::format("{:.4g}", t.calls / ranks),
         t.wire_bytes > 0 ? base::format_bytes(static_cast<uint64_t>(t.wire_bytes / ranks + 0.5)) : "",
         duration(t.seconds / ranks), duration(t.waiting / ranks),
         t.timed > 0 ? duration(t.timed_seconds / t.timed) : "",
         t.timed_bytes > 0 && t.timed_seconds > 0 ? base::format_rate(t.timed_bytes / t.timed_seconds, "B/s") : ""});
  }
  return html_heading("Transfers of a rank") + html_table(table) +
         html_paragraph(
             "Exposed: the time that the rank waited for such a transfer while it was under way; waiting: before the "
             "other ranks had begun theirs. The time of a call and the bandwidth are of those transfers that the rank "
             "waited for from beginning to end.");
}

std::string bubbles_of_step(const std::vector<StageBubble>& bubbles) {
  if (bubbles.empty()) return "";
  Table table = {
      .align = "rrrrrlrr",
      .head = {"stage", "as planned", "with measured tasks", "as run", "waiting", "most for", "communication", "rest"},
      .wide = true};
  for (size_t stage = 0; stage < bubbles.size(); ++stage) {
    const StageBubble& b = bubbles[stage];
    table.rows.push_back({fmt::format("{}", stage), share_text(b.planned), share_text(b.replayed), share_text(b.run),
                          share_text(b.waiting), b.rank < 0 ? "" : fmt::format("rank {}", b.rank),
                          share_text(b.communication), share_text(b.rest)});
  }
  return html_heading("Bubble, idle over busy time") + html_table(table) +
         html_paragraph(
             "As planned: tasks as long as their arithmetic. With measured tasks: the same order of tasks, each as "
             "long as "
             "its kernels took on average. As run: the rest of the step over the time of these kernels: waiting for "
             "other ranks, communication, the update and inputs.");
}

std::string schedules_of_step(const ReportRun& run) {
  const StepProfile& profile = run.measured->profile;
  const bool planned = run.planned && run.planned->stages.size() > 1;
  std::string html;
  if (planned)
    html += html_heading("Schedule, as planned") + html_picture(run.planned->schedule_svg, run.planned->schedule);
  return html + html_heading("Schedule, as run") +
         html_picture(run_schedule_picture(profile),
                      "Each block is a part of a task, with its micro-batch. The line under a rank: when transfers "
                      "that it takes part in were under way, up to the end of its wait for them.") +
         bubbles_of_step(run.measured->bubbles);
}

}  // namespace

std::string html_measured(const ReportRun& run, std::span<const std::string> operations) {
  const StepProfile& profile = run.measured->profile;
  std::string what = fmt::format("Step {}, as it was measured", base::group_digits(profile.step));
  if (const auto shown = std::ssize(profile.of_ranks); shown < profile.ranks)
    what += fmt::format("; {} of {} ranks", shown, base::group_digits(profile.ranks));
  if (profile.clocks > 0) what += fmt::format("; clocks of ranks agree within {}", duration(profile.clocks));
  return html_paragraph(what + ".") + html_picture(step_picture(profile, operations), "") +
         step_legend(profile, operations) + ranks_of_step(profile) + operations_of_step(profile) +
         schedules_of_step(run) + transfers_of_step(profile);
}

}  // namespace kintsugi::report
